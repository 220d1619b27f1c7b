// Does what the conformance kit asks: reads a command a line as JSON, and answers each with a line
// (tests/integration/client/conformance/fixtures_drivers.py).
import { createServer } from "node:http";
import { createInterface } from "node:readline";

import mysql2 from "mysql2/promise";
import * as outbox from "outbox-client";
import pg from "pg";

const bytes = (text) => (text === null ? null : Buffer.from(text, "base64"));

const commands = { send, serve, record, purge };

/** Send a message for each transaction id, all at the same time. */
async function send({ url, group, seconds, transaction_ids, key, value, headers, local, followers }) {
  const producer = new outbox.Producer({ url, group, timeoutMs: 1000 * seconds });
  const named = Object.entries(headers).map(([name, each]) => [name, bytes(each)]);
  const content = { topic: "invoices", key: bytes(key), value: bytes(value), headers: Object.fromEntries(named) };
  const one = async (transactionId) => {
    const others = followers.map((each) => ({ topic: "invoices", value: bytes(each) }));
    const messages = [{ ...content, transactionId }, ...others];
    let ran = 0;
    const run = async () => {
      ran++;
      if (local === "fail") throw new Error("local");
    };
    const outcome = await producer.send(messages, run).then(() => "ended", outcomeOf);
    return { outcome, ran };
  };
  return { results: await Promise.all(transaction_ids.map(one)) };
}

function outcomeOf(error) {
  if (!(error instanceof outbox.OutboxError)) return error.message;
  return error.code === "not-ended" ? "end failed" : error.code.replace("-", " ");
}

/** Answer checks with one verdict, or from the barrier of a database. */
async function serve({ group, secret, verdict, database }) {
  const barrier = database && (await barrierOf(database, group));
  const decide = (check) => {
    if (verdict === "raise") throw new Error("as asked");
    return barrier ? barrier.check(check) : verdict;
  };
  const server = createServer(new outbox.CheckEndpoint({ group, secret, decide }).handler);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/outbox/check` };
}

/** Commit a local transaction that has no rows of its own. */
async function record({ database, group, message_id }) {
  const barrier = await barrierOf(database, group);
  try {
    await barrier.run(message_id, async () => {});
  } catch (error) {
    if (error.code === "fenced") return { outcome: "fenced" };
    throw error;
  }
  return { outcome: "recorded" };
}

async function purge({ database, group, days }) {
  return { deleted: await (await barrierOf(database, group)).purge(days) };
}

async function barrierOf({ kind, url, socket }, group) {
  const barrier = new outbox.Barrier(kind === "mysql" ? mysqlAt(socket) : postgresqlAt(url), group);
  await barrier.createTable();
  return barrier;
}

const mysqlAt = (socketPath) => outbox.mysql(mysql2.createPool({ socketPath, user: "root", database: "test" }));

function postgresqlAt(connectionString) {
  const pool = new pg.Pool({ connectionString });
  pool.on("error", () => {}); // the database is dropped after each test
  return outbox.postgresql(pool);
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  const answer = await commands[asked.do](asked).catch((error) => ({ error: error.message }));
  console.log(JSON.stringify(answer));
}
process.exit(0);
