import { Webhook } from "standardwebhooks";

const BODY_MAX_BYTES = 16 * 1024 * 1024;
const REASON_CHARACTERS = 80; // the service reads 64 KiB of the answer to 100 checks
const DECISIONS = new Set(["COMMIT", "ROLLBACK", "UNKNOWN"]);
const LATE = { decision: "UNKNOWN", reason: "no answer before reply_by" };

class Refusal extends Error {
  constructor(status, title) {
    super(title);
    this.status = status;
  }
}

/**
 * Answers the checks of one producer group. `decide(check)` resolves to COMMIT, ROLLBACK or UNKNOWN, or to
 * `{ decision, reason, retryAfterSeconds }`; an error is answered with UNKNOWN. During a rotation the service signs
 * with both secrets.
 */
export class CheckEndpoint {
  #group;
  #verifier;
  #decide;

  constructor({ group, secret, decide }) {
    if (!/^whsec_[A-Za-z0-9+/]+=*$/.test(secret ?? "")) {
      throw new Error("a check secret is whsec_ and base64, and not empty");
    }
    this.#group = group;
    this.#verifier = new Webhook(secret);
    this.#decide = decide;
  }

  /** A handler for `http.createServer`, and for Express before any parser of bodies. */
  handler = async (request, response) => {
    let answer;
    try {
      answer = await this.answer(request.headers, await rawBody(request));
    } catch (error) {
      answer = refusal(error);
    }
    response.writeHead(answer.status, { "content-type": "application/json" });
    response.end(answer.body);
  };

  /** For any other framework: headers by lower-case name and the raw body, to `{ status, body }`. */
  async answer(headers, body) {
    try {
      const { batch, checks, sentAt } = this.#read(headers, Buffer.from(body));
      const verdicts = await Promise.all(checks.map((check) => this.#verdict(check, sentAt)));
      return { status: 200, body: JSON.stringify(batch ? { verdicts } : verdicts[0]) };
    } catch (error) {
      return refusal(error);
    }
  }

  #read(headers, body) {
    try {
      this.#verifier.verify(body, headers, { jsonParse: false });
    } catch {
      throw new Refusal(401, "the signature is not valid");
    }
    const request = parsed(body);
    if (request.checks.some((check) => check.producerGroup !== this.#group)) {
      throw new Refusal(403, "a check of another producer group");
    }
    return request;
  }

  /** Every doubtful case is UNKNOWN: the service asks again. It takes nine tenths of the time that the service gives. */
  async #verdict(check, sentAt) {
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, (check.replyBy - sentAt) * 0.9, LATE);
    });
    const found = await Promise.race([this.#decided(check), late]);
    clearTimeout(timer);
    return {
      message_id: check.messageId,
      decision: found.decision,
      reason: found.reason?.slice(0, REASON_CHARACTERS),
      retry_after_seconds: found.retryAfterSeconds,
    };
  }

  async #decided(check) {
    try {
      const found = await this.#decide(check);
      const verdict = typeof found === "string" ? { decision: found } : found;
      if (DECISIONS.has(verdict.decision)) return verdict;
      throw new TypeError("decide returned no decision");
    } catch (error) {
      console.error(`a check of the outbox failed, message ${check.messageId}:`, error);
      return { decision: "UNKNOWN", reason: "the check failed" };
    }
  }
}

/** Read the raw body: the signature covers these bytes, not the parsed value. */
async function rawBody(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > BODY_MAX_BYTES) throw new Refusal(413, "the body is too long");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function parsed(body) {
  try {
    const { type, timestamp, data } = JSON.parse(body);
    const batch = type === "transaction.check.batch";
    const checks = (batch ? data.checks : [data]).map(checkOf);
    if (checks.length > 0 && (batch || type === "transaction.check")) {
      return { batch, checks, sentAt: new Date(timestamp) };
    }
  } catch {
    // told below
  }
  throw new Refusal(400, "not a check");
}

function checkOf(data) {
  return {
    messageId: data.message_id,
    transactionId: data.transaction_id,
    producerGroup: data.producer_group,
    topic: data.topic,
    preparedAt: new Date(data.prepared_at),
    replyBy: new Date(data.reply_by),
  };
}

function refusal(error) {
  const status = error.status ?? 503;
  return { status, body: JSON.stringify({ status, title: error.message }) };
}
