import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { CommittedError, EndError, NoAnswerError, RefusedError } from "./errors.mjs";
import { SharedRequests } from "./share.mjs";

const PREPARES = 3;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2000;
const UNCERTAIN = new Set([408, 429, 500, 502, 503, 504]);

/**
 * Prepares and ends messages of one group. Share one in the whole process: calls at the same time travel together, and
 * a single call is sent at once.
 */
export class Producer {
  #url;
  #headers;
  #group;
  #timeoutMs;
  #prepares;
  #ends;

  constructor({ url, group, apiKey, timeoutMs = 10_000 }) {
    this.#url = url.replace(/\/$/, "");
    this.#headers = { "content-type": "application/json", ...(apiKey && { authorization: `Bearer ${apiKey}` }) };
    this.#group = group;
    this.#timeoutMs = timeoutMs;
    const post = (path, body) => this.#post(path, body);
    this.#prepares = new SharedRequests(post, "/v1/half-messages/batch");
    this.#ends = new SharedRequests(post, "/v1/half-messages/end-batch");
  }

  /**
   * Prepare `message`, run `localTransaction(prepared)`, end the message with COMMIT. Several messages in an array have
   * one decision, and the transaction id of the first.
   *
   * If the local transaction throws, nothing is ended: a check finds out what became of it. An `EndError` comes after
   * the local transaction has committed; every other error before. A `CommittedError` comes instead of a second run of
   * a local transaction. If earlier messages with this transaction id were rolled back, it prepares again as ID/2, then
   * as ID/3.
   */
  async send(message, localTransaction) {
    const prepared = await this.#prepareFirst(message);
    await localTransaction(prepared);
    try {
      return await this.end(prepared.messageId, "COMMIT");
    } catch (error) {
      throw new EndError(prepared.messageId, error);
    }
  }

  async #prepareFirst(message) {
    const [first, ...followers] = [message].flat();
    for (let number = 2, next = first; ; number++) {
      try {
        return await this.prepare([next, ...followers]);
      } catch (error) {
        const again = error.winningDecision === "ROLLBACK" && first.transactionId && number <= PREPARES;
        if (!again) throw error;
      }
      next = { ...first, transactionId: `${first.transactionId}/${number}` };
    }
  }

  /** Store messages of one decision; they are durable when this resolves. After an error run no local transaction. */
  async prepare(message) {
    const messages = [message].flat();
    const transactionId = messages[0].transactionId ?? randomUUID();
    const body = JSON.stringify(prepareBody(this.#group, transactionId, messages));
    const item = { path: "/v1/half-messages", alone: body, batched: body, messages: messages.length };
    const answer = await this.#repeated(this.#prepares, item, 201);
    if (answer.members.transaction_id !== transactionId) {
      throw new RefusedError(answer.status, { title: "the answer belongs to another message" });
    }
    return { messageId: answer.members.message_id, transactionId, replayed: answer.replayed };
  }

  /** Decide a message. It may be repeated; the first decision stands. */
  async end(messageId, decision) {
    const path = `/v1/half-messages/${encodeURIComponent(messageId)}/end`;
    const batched = JSON.stringify({ message_id: messageId, decision });
    const item = { path, alone: JSON.stringify({ decision }), batched, messages: 1 };
    const { members } = await this.#repeated(this.#ends, item, 200);
    return { messageId: members.message_id, state: members.state, decision: members.decision };
  }

  /** Send an item until its answer is certain or the time is over; return an answer of the wanted status. */
  async #repeated(by, item, wanted) {
    const deadline = Date.now() + this.#timeoutMs;
    for (let longest = FIRST_PAUSE_MS; ; longest = Math.min(2 * longest, LONGEST_PAUSE_MS)) {
      const answer = await by.exchange(item);
      if (answer.status === wanted && answer.members) return answer;
      const pause = Math.max(longest * Math.random(), answer.retryAfterMs);
      const uncertain = answer.error || UNCERTAIN.has(answer.status);
      if (!uncertain || Date.now() + pause > deadline) throw errorOf(answer);
      await sleep(pause);
    }
  }

  /** Make one attempt. It takes half the time at most: a dead connection does not use all of it. */
  async #post(path, body) {
    try {
      const response = await fetch(this.#url + path, {
        method: "POST",
        headers: this.#headers,
        body,
        redirect: "manual", // a redirected POST would become a GET, which is answered with 200
        signal: AbortSignal.timeout(this.#timeoutMs / 2),
      });
      return {
        status: response.status,
        members: membersOf(await response.text()),
        retryAfterMs: 1000 * (Number(response.headers.get("retry-after")) || 0),
        replayed: response.headers.get("idempotency-replayed") === "true",
      };
    } catch (error) {
      return { error, retryAfterMs: 0 };
    }
  }
}

function membersOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // of a proxy
  }
}

function errorOf({ status, members, error }) {
  if (error) return new NoAnswerError(error);
  const problem = (status >= 400 && members) || {};
  return new (problem.winning_decision === "COMMIT" ? CommittedError : RefusedError)(status, problem);
}

function prepareBody(group, transactionId, messages) {
  const contents = messages.map(contentOf);
  return {
    producer_group: group,
    transaction_id: transactionId,
    check_immunity_seconds: messages[0].checkImmunitySeconds,
    ...(contents.length > 1 ? { messages: contents } : contents[0]),
  };
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
