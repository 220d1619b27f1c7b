// Issues invoices ("issue NUMBER [forget]"), and answers the checks of their messages ("serve").
import { createServer } from "node:http";

import { Barrier, CheckEndpoint, postgresql, Producer } from "outbox-client";
import pg from "pg";

const { OUTBOX_API_URL: url, OUTBOX_API_KEY: apiKey, DATABASE_URL, CHECK_SECRET: secret, PORT } = process.env;
const group = process.env.PRODUCER_GROUP ?? "billing";
const [word, number, forget] = process.argv.slice(2);

const pool = new pg.Pool({ connectionString: DATABASE_URL });
pool.on("error", () => {}); // an idle connection ended: the next query opens another
const barrier = new Barrier(postgresql(pool), group);
await barrier.createTable();

if (word === "serve") {
  const endpoint = new CheckEndpoint({ group, secret, decide: (check) => barrier.check(check) });
  createServer(endpoint.handler).listen(Number(PORT ?? 9000), "127.0.0.1");
} else {
  await pool.query("CREATE TABLE IF NOT EXISTS invoice (number bigint PRIMARY KEY)");
  const value = JSON.stringify({ invoice: Number(number) });
  const message = { topic: "invoices.issued", key: "cust-58", value, transactionId: `invoice-${number}` };
  try {
    await new Producer({ url, group, apiKey }).send(message, async (messageId) => {
      await barrier.run(messageId, (client) => client.query("INSERT INTO invoice VALUES ($1)", [number]));
      if (forget) process.exit(0); // as if the process had died here
    });
  } catch (error) {
    if (error.code !== "committed") throw error; // an earlier call has stored it
  }
  console.log(`invoice ${number} is stored`);
  process.exit(0); // open connections would keep the process alive
}
