// A service in Node that issues invoices, and announces each in Kafka if and only if it is stored.
//
//   node billing.mjs issue NUMBER [forget]    prepare, local transaction, end; `forget` stops before the end
//   node billing.mjs serve                    answers checks at PORT
//   node billing.mjs verify SECRET ID TIMESTAMP SIGNATURES NOW  < body      exit 0 or 1
//
// Environment: API, API_KEY (where keys are needed), DATABASE_URL, CHECK_SECRET, PORT, PRODUCER_GROUP.
import { readFileSync } from "node:fs";

import pg from "pg";

import { createTable, decide, record, transaction } from "./barrier.mjs";
import { serve } from "./endpoint.mjs";
import { Outbox } from "./producer.mjs";
import { keyOf, verify } from "./signature.mjs";

const { API, API_KEY, DATABASE_URL, CHECK_SECRET, PORT, PRODUCER_GROUP: group = "billing" } = process.env;

async function open() {
  const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 8 });
  pool.on("error", () => {}); // an idle connection ended: the next query opens another
  await pool.query("CREATE TABLE IF NOT EXISTS invoice (number bigint PRIMARY KEY)");
  await createTable(pool);
  return pool;
}

async function issue(number, forget) {
  const pool = await open();
  const message = {
    producer_group: group,
    topic: "invoices.issued",
    key: "cust-58",
    value: JSON.stringify({ invoice: number }),
    transaction_id: `invoice-${number}`,
  };
  const ended = await new Outbox(API, API_KEY).send(message, async (messageId) => {
    await transaction(pool, async (client) => {
      await client.query("INSERT INTO invoice VALUES ($1)", [number]);
      await record(client, group, messageId);
    });
    if (forget) process.exit(0); // as if the process had died here
  });
  console.log(JSON.stringify(ended));
  await pool.end();
}

async function answerChecks() {
  const pool = await open();
  const endpoint = { group, key: keyOf(CHECK_SECRET), decide: (messageId) => decide(pool, group, messageId) };
  serve(endpoint, Number(PORT ?? 9000));
}

function verifyArguments([secret, id, timestamp, signatures, now]) {
  const fits = verify(keyOf(secret), id, timestamp, signatures, readFileSync(0), Number(now));
  process.exitCode = fits ? 0 : 1;
}

const [word, ...given] = process.argv.slice(2);
if (word === "issue" && given.length >= 1) {
  await issue(Number(given[0]), given[1] === "forget");
} else if (word === "serve") {
  await answerChecks();
} else if (word === "verify" && given.length === 5) {
  verifyArguments(given);
} else {
  console.error("usage: billing.mjs issue NUMBER [forget] | serve | verify SECRET ID TIMESTAMP SIGNATURES NOW");
  process.exitCode = 2;
}
