// A check endpoint in Node: verifies the signature, looks up the transaction, answers.
//
//   node check-endpoint.mjs serve            PORT, PRODUCER_GROUP, CHECK_SECRET, TRANSACTIONS
//   node check-endpoint.mjs verify SECRET ID TIMESTAMP SIGNATURES NOW  < body      exit 0 or 1
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";

import { keyOf, verify } from "./signature.mjs";

const BODY_MAX_BYTES = 16 * 1024 * 1024;
const seconds = () => Math.floor(Date.now() / 1000);

class Refused extends Error {
  constructor(status, title) {
    super(title);
    this.status = status;
  }
}

/** Read the raw body: the signature covers these bytes, not the parsed value. */
async function rawBody(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > BODY_MAX_BYTES) throw new Refused(413, "the body is too long");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function parsed(body) {
  try {
    const { type, data } = JSON.parse(body.toString("utf8"));
    const batch = type === "transaction.check.batch";
    return { batch, checks: batch ? [...data.checks] : [data] };
  } catch {
    throw new Refused(400, "not a check");
  }
}

/**
 * Every doubtful case is UNKNOWN: an error, or a transaction that is not found (yet).
 * Only a barrier turns "not found" into ROLLBACK.
 */
async function verdictOf(check, decide) {
  try {
    return { message_id: check.message_id, decision: await decide(check.transaction_id) };
  } catch {
    return { message_id: check.message_id, decision: "UNKNOWN", reason: "the database did not answer" };
  }
}

async function answer(request, { group, key, decide }) {
  const body = await rawBody(request);
  const of = (name) => request.headers[name];
  if (!verify(key, of("webhook-id"), of("webhook-timestamp"), of("webhook-signature"), body, seconds())) {
    throw new Refused(401, "the signature is not valid");
  }
  const { batch, checks } = parsed(body);
  if (checks.some((check) => check.producer_group !== group)) {
    throw new Refused(403, "a check of another producer group");
  }
  const verdicts = await Promise.all(checks.map((check) => verdictOf(check, decide)));
  return batch ? { verdicts } : verdicts[0];
}

function reply(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function serve(endpoint, port) {
  const server = createServer((request, response) => {
    answer(request, endpoint).then(
      (body) => reply(response, 200, body),
      (error) => reply(response, error.status ?? 503, { status: error.status ?? 503, title: error.message }),
    );
  });
  server.listen(port, "127.0.0.1");
}

/** Replaces the lookup in your database: lines of a transaction id and its decision. */
async function fromFile(transactionId) {
  const text = await readFile(process.env.TRANSACTIONS, "utf8");
  const line = text.split("\n").find((it) => it.split(" ")[0] === transactionId);
  return line ? line.split(" ")[1] : "UNKNOWN";
}

const [word, ...given] = process.argv.slice(2);
if (word === "serve") {
  const { PRODUCER_GROUP: group, CHECK_SECRET: secret, PORT: port } = process.env;
  serve({ group, key: keyOf(secret), decide: fromFile }, Number(port));
} else if (word === "verify" && given.length === 5) {
  const [secret, id, timestamp, signatures, now] = given;
  const fits = verify(keyOf(secret), id, timestamp, signatures, readFileSync(0), Number(now));
  process.exitCode = fits ? 0 : 1;
} else {
  console.error("usage: check-endpoint.mjs serve | verify SECRET ID TIMESTAMP SIGNATURES NOW");
  process.exitCode = 2;
}
