import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { OutboxError } from "./error.mjs";
import { SharedRequests } from "./share.mjs";

const UNCERTAIN = new Set([408, 429, 500, 502, 503, 504]);

/**
 * Prepares and ends messages of one group. Share one in the whole process: calls at the same time travel together, and
 * a single call is sent at once.
 */
export class Producer {
  #group;
  #timeoutMs;
  #prepares;
  #ends;

  constructor({ url, group, apiKey, timeoutMs = 10_000 }) {
    this.#group = group;
    this.#timeoutMs = timeoutMs;
    const headers = { "content-type": "application/json", ...(apiKey && { authorization: `Bearer ${apiKey}` }) };
    // One attempt takes half the time at most: a dead connection does not use all of it.
    const post = (operation) => (body) => attempt(`${url}/v1/half-messages/${operation}`, headers, body, timeoutMs / 2);
    this.#prepares = new SharedRequests(post("batch"));
    this.#ends = new SharedRequests(post("end-batch"));
  }

  /**
   * Prepare `message`, run `localTransaction(messageId)`, end the message with COMMIT; resolve to what the local
   * transaction returned. Several messages in an array have one decision, and the transaction id of the first.
   *
   * If the local transaction throws, nothing is ended: a check finds out what became of it. An error with the code
   * `not-ended` comes after the local transaction has committed; every other error before. `committed` comes instead of
   * a second run of a local transaction. If earlier messages with this transaction id were rolled back, it prepares
   * again as ID/2, then as ID/3.
   */
  async send(message, localTransaction) {
    const messageId = await this.#prepareFirst([message].flat());
    const result = await localTransaction(messageId);
    try {
      await this.end(messageId, "COMMIT");
    } catch (cause) {
      throw new OutboxError("not-ended", `message ${messageId} is committed here, but not ended`, cause);
    }
    return result;
  }

  async #prepareFirst([first, ...followers]) {
    for (let number = 2, next = first; ; number++) {
      try {
        return await this.prepare([next, ...followers]);
      } catch (error) {
        if (error.code !== "rolled-back" || !first.transactionId || number > 3) throw error;
      }
      next = { ...first, transactionId: `${first.transactionId}/${number}` };
    }
  }

  /** Store messages of one decision; resolve to their id. After an error run no local transaction. */
  async prepare(message) {
    const messages = [message].flat();
    const contents = messages.map(contentOf);
    const item = {
      producer_group: this.#group,
      transaction_id: messages[0].transactionId ?? randomUUID(),
      check_immunity_seconds: messages[0].checkImmunitySeconds,
      ...(contents.length > 1 ? { messages: contents } : contents[0]),
    };
    return this.#repeated(this.#prepares, item, messages.length);
  }

  /** Decide a message. It may be repeated; the first decision stands. */
  async end(messageId, decision) {
    await this.#repeated(this.#ends, { message_id: messageId, decision }, 1);
  }

  /** Send an item until its answer is certain or the time is over; resolve to the message id of a success. */
  async #repeated(requests, item, messages) {
    const body = JSON.stringify(item);
    const deadline = Date.now() + this.#timeoutMs;
    for (let longest = 50; ; longest = Math.min(2 * longest, 2000)) {
      const answer = await requests.share(body, messages);
      if (answer.result) return answer.result.message_id;
      const pause = Math.max(longest * Math.random(), answer.retryAfterMs ?? 0);
      const uncertain = answer.error || UNCERTAIN.has(answer.status);
      if (!uncertain || Date.now() + pause > deadline) throw failureOf(answer);
      await sleep(pause);
    }
  }
}

async function attempt(url, headers, body, timeoutMs) {
  try {
    // A redirected POST would become a GET, which is answered with 200.
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await fetch(url, { method: "POST", headers, body, redirect: "manual", signal });
    const members = await response.json().catch(() => undefined); // a proxy's page
    const retryAfterMs = 1000 * (Number(response.headers.get("retry-after")) || 0);
    const items = response.status === 207 && members?.items;
    return { status: response.status, items, problem: members, retryAfterMs };
  } catch (error) {
    return { error };
  }
}

function failureOf({ status, problem, error }) {
  if (error) return new OutboxError("no-answer", "the outbox does not answer", error);
  const { winning_decision: winner, code = "not an answer of the outbox", detail = "" } = problem ?? {};
  const kind = { COMMIT: "committed", ROLLBACK: "rolled-back" }[winner] ?? "refused";
  return new OutboxError(kind, `${status} ${code}: ${detail}`, problem);
}

/** A null counts as absent, except that a null value alone is a tombstone. */
function contentOf({ topic, key = null, value, headers = {}, contentType, partition, tags }) {
  const named = Object.entries(headers).map(([name, each]) => [name, isBytes(each) ? { base64: base64(each) } : each]);
  return {
    topic,
    ...(isBytes(key) ? { key_base64: base64(key) } : { key }),
    ...(isBytes(value) ? { value_base64: base64(value) } : { value }),
    headers: Object.fromEntries(named),
    content_type: contentType,
    partition,
    tags,
  };
}

const isBytes = (value) => value instanceof Uint8Array;
const base64 = (bytes) => Buffer.from(bytes).toString("base64");
