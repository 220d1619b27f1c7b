// A service in Node that issues invoices, and announces each in Kafka if and only if it is stored.
//
//   node billing.mjs issue NUMBER [forget]    prepare, local transaction, end; `forget` stops before the end
//   node billing.mjs serve                    answers checks at PORT
//   node billing.mjs verify SECRET ID TIMESTAMP SIGNATURES NOW  < body      exit 0 or 1
//
// Environment: OUTBOX_API_URL, OUTBOX_API_KEY (where keys are needed), DATABASE_URL, CHECK_SECRET, PORT,
// PRODUCER_GROUP.
import { readFileSync } from "node:fs";

import pg from "pg";

import { createTable, decide, record, transaction } from "./barrier.mjs";
import { serve } from "./endpoint.mjs";
import { CommittedError, Outbox } from "./producer.mjs";
import { keyOf, verify } from "./signature.mjs";

const { OUTBOX_API_URL, OUTBOX_API_KEY, DATABASE_URL, CHECK_SECRET, PORT } = process.env;
const group = process.env.PRODUCER_GROUP ?? "billing";
const USAGE = "usage: billing.mjs issue NUMBER [forget] | serve | verify SECRET ID TIMESTAMP SIGNATURES NOW";

/** Throws for the first of these environment variables that is missing. */
function need(...names) {
  const missing = names.find((name) => !process.env[name]);
  if (missing) throw new Error(`${missing} is not set in this terminal`);
}

async function open() {
  const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 8 });
  pool.on("error", () => {}); // an idle connection ended: the next query opens another
  await pool.query("CREATE TABLE IF NOT EXISTS invoice (number bigint PRIMARY KEY)");
  await createTable(pool);
  return pool;
}

async function issue(number, forget) {
  need("OUTBOX_API_URL", "DATABASE_URL");
  const pool = await open();
  const message = {
    producer_group: group,
    topic: "invoices.issued",
    key: "cust-58",
    value: JSON.stringify({ invoice: number }),
    transaction_id: `invoice-${number}`,
  };
  const store = async (messageId) => {
    await transaction(pool, async (client) => {
      await client.query("INSERT INTO invoice VALUES ($1)", [number]);
      await record(client, group, messageId);
    });
    if (forget) process.exit(0); // as if the process had died here
  };
  try {
    console.log(JSON.stringify(await new Outbox(OUTBOX_API_URL, OUTBOX_API_KEY).send(message, store)));
  } catch (error) {
    if (!(error instanceof CommittedError)) throw error;
    await show(pool, number);
  }
  await pool.end();
}

/** Print the row of an invoice that another call has issued. */
async function show(pool, number) {
  const { rows } = await pool.query("SELECT number FROM invoice WHERE number = $1", [number]);
  console.log(`invoice ${rows[0].number} is stored`);
}

async function answerChecks() {
  need("CHECK_SECRET", "DATABASE_URL");
  const pool = await open();
  const endpoint = { group, key: keyOf(CHECK_SECRET), decide: (messageId) => decide(pool, group, messageId) };
  const address = await serve(endpoint, Number(PORT ?? 9000));
  console.error(`answering checks of the group ${group} at ${address}`);
}

function verifyArguments([secret, id, timestamp, signatures, now]) {
  const fits = verify(keyOf(secret), id, timestamp, signatures, readFileSync(0), Number(now));
  process.exitCode = fits ? 0 : 1;
}

async function run([word, ...given]) {
  if (word === "issue" && /^\d+$/.test(given[0])) {
    await issue(Number(given[0]), given[1] === "forget");
  } else if (word === "serve") {
    await answerChecks();
  } else if (word === "verify" && given.length === 5) {
    verifyArguments(given);
  } else {
    console.error(USAGE);
    process.exitCode = 2;
  }
}

await run(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  process.exit(1); // open connections would keep the process alive
});
