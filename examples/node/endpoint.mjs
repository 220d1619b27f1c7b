import { createServer } from "node:http";

import { verify } from "./signature.mjs";

const BODY_MAX_BYTES = 16 * 1024 * 1024;
const seconds = () => Math.floor(Date.now() / 1000);

class Refused extends Error {
  constructor(status, title) {
    super(title);
    this.status = status;
  }
}

/**
 * Answer the checks of one producer group: verify the signature, ask `decide`, answer.
 * `decide(messageId, transactionId)` resolves to COMMIT, ROLLBACK or UNKNOWN. Resolves to the
 * address as soon as the server listens.
 */
export function serve({ group, key, decide }, port) {
  const server = createServer((request, response) => {
    answer(request, { group, key, decide }).then(
      (body) => reply(response, 200, body),
      (error) => reply(response, error.status ?? 503, { status: error.status ?? 503, title: error.message }),
    );
  });
  return new Promise((resolve, reject) => {
    server.on("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(`http://127.0.0.1:${port}`));
  });
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

/** Every doubtful case is UNKNOWN: the service asks again. */
async function verdictOf(check, decide) {
  try {
    return { message_id: check.message_id, decision: await decide(check.message_id, check.transaction_id) };
  } catch {
    return { message_id: check.message_id, decision: "UNKNOWN", reason: "the database did not answer" };
  }
}

function reply(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
