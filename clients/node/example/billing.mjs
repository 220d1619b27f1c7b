// Issues invoices; Kafka gets a record of an invoice if, and only if, it is stored.
//
//   node billing.mjs issue NUMBER [forget]    prepare, local transaction, end; `forget` stops before the end
//   node billing.mjs serve                    answers checks at PORT
import { createServer } from "node:http";

import { Barrier, CheckEndpoint, CommittedError, postgresql, Producer } from "outbox-client";
import pg from "pg";

const { OUTBOX_API_URL: url, OUTBOX_API_KEY: apiKey, DATABASE_URL, CHECK_SECRET: secret, PORT } = process.env;
const group = process.env.PRODUCER_GROUP ?? "billing";
const [word, number, forget] = process.argv.slice(2);

const pool = new pg.Pool({ connectionString: DATABASE_URL });
pool.on("error", () => {}); // an idle connection ended: the next query opens another
const barrier = new Barrier(postgresql(pool), group);

async function issue() {
  const producer = new Producer({ url, group, apiKey });
  const message = {
    topic: "invoices.issued",
    key: "cust-58",
    value: JSON.stringify({ invoice: Number(number) }),
    transactionId: `invoice-${number}`,
  };
  return producer.send(message, async (prepared) => {
    await barrier.run(prepared, (client) => client.query("INSERT INTO invoice VALUES ($1)", [number]));
    if (forget) process.exit(0); // as if the process had died here
  });
}

try {
  await pool.query("CREATE TABLE IF NOT EXISTS invoice (number bigint PRIMARY KEY)");
  await barrier.createTable();
  if (word === "serve") {
    const endpoint = new CheckEndpoint({ group, secret, decide: (check) => barrier.check(check) });
    createServer(endpoint.handler).listen(Number(PORT ?? 9000), "127.0.0.1");
  } else {
    console.log(JSON.stringify(await issue()));
    process.exit(0); // open connections would keep the process alive
  }
} catch (error) {
  const done = error instanceof CommittedError;
  console[done ? "log" : "error"](done ? `invoice ${number} is stored` : error.message);
  process.exit(done ? 0 : 1);
}
