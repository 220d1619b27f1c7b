import { setTimeout as sleep } from "node:timers/promises";

import { Webhook, WebhookVerificationError } from "standardwebhooks";

const BODY_MAX_BYTES = 16 * 1024 * 1024;

/**
 * Answers the checks of one producer group. `decide(check)` gets a check as the service sends it, and resolves to
 * COMMIT, ROLLBACK or UNKNOWN; an error is answered with UNKNOWN. During a rotation the service signs with both secrets.
 */
export class CheckEndpoint {
  #group;
  #verifier;
  #decide;

  constructor({ group, secret, decide }) {
    if (!/^whsec_./.test(secret)) throw new Error("a check secret is whsec_ and base64, and not empty");
    this.#group = group;
    this.#verifier = new Webhook(secret);
    this.#decide = decide;
  }

  /** A handler for `http.createServer`, and for Express before any parser of bodies. */
  handler = async (request, response) => {
    try {
      const received = await rawBody(request);
      const { status, body } = received ? await this.answer(request.headers, received) : { status: 413 };
      response.writeHead(status, { "content-type": "application/json" }).end(body);
    } catch {
      response.destroy(); // the body did not arrive
    }
  };

  /** For any other framework: headers by lower-case name and the raw body, to a status and a body. */
  async answer(headers, body) {
    let asked;
    try {
      asked = this.#verifier.verify(body, headers);
    } catch (error) {
      return { status: error instanceof WebhookVerificationError ? 401 : 400 };
    }
    const { type, timestamp, data } = asked ?? {};
    const checks = type === "transaction.check" ? [data] : (data?.checks ?? []);
    if (checks.length === 0) return { status: 400 };
    if (checks.some((check) => check.producer_group !== this.#group)) return { status: 403 };
    const verdicts = await Promise.all(checks.map((check) => this.#verdict(check, timestamp)));
    return { status: 200, body: JSON.stringify(type === "transaction.check" ? verdicts[0] : { verdicts }) };
  }

  /** It takes nine tenths of the time that the service gives. */
  async #verdict(check, timestamp) {
    const late = sleep((Date.parse(check.reply_by) - Date.parse(timestamp)) * 0.9, "UNKNOWN", { ref: false });
    return { message_id: check.message_id, decision: await Promise.race([this.#decided(check), late]) };
  }

  /** Every doubtful case is UNKNOWN: the service asks again. */
  async #decided(check) {
    try {
      const decision = await this.#decide(check);
      return ["COMMIT", "ROLLBACK"].includes(decision) ? decision : "UNKNOWN";
    } catch (error) {
      console.error(`a check of the outbox failed, message ${check.message_id}:`, error);
      return "UNKNOWN";
    }
  }
}

/** Read the raw body: the signature covers these bytes, not the parsed value. Undefined is one that is too long. */
async function rawBody(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > BODY_MAX_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
