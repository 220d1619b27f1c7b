/** Prepare and end over HTTP. Every request may be repeated: the service recognises it. */

const ATTEMPTS = 5;
const PREPARES = 3;
const TIMEOUT_MS = 10_000;
const AGAIN = new Set([408, 429, 500, 502, 503, 504]);

/**
 * The local transaction is committed, but its message's end is not confirmed: do not run the local transaction again.
 * If the service did not answer, a check settles the message. If it answered `already-ended`, somebody else has rolled
 * the message back.
 */
export class EndError extends Error {
  constructor(messageId, cause) {
    super(`the local transaction is committed, but not the end of message ${messageId}: ${cause.message}`, { cause });
    this.messageId = messageId;
  }
}

/** The transaction id is committed: nothing is left to do, read your own row. */
export class CommittedError extends Error {}

export class Outbox {
  constructor(url, key) {
    this.url = url;
    this.headers = { "content-type": "application/json", ...(key && { authorization: `Bearer ${key}` }) };
  }

  /**
   * Prepare `message`, run `localTransaction(messageId)`, end the message with COMMIT.
   * If the local transaction throws, nothing is ended: the check finds out what became of it. If the end fails, this
   * throws an `EndError`; every other error comes from before the local commit, or from `localTransaction` itself.
   * A `CommittedError` comes instead of a second run of a local transaction that is committed.
   */
  async send(message, localTransaction) {
    const prepared = await this.#prepare(message);
    await localTransaction(prepared.message_id);
    try {
      return await this.end(prepared.message_id, "COMMIT");
    } catch (error) {
      throw new EndError(prepared.message_id, error);
    }
  }

  /**
   * Store a half message. If one with this transaction id is rolled back, nothing of it is committed and nothing can
   * be any more: the next one has the transaction id ID/2, then ID/3.
   */
  async #prepare(message) {
    for (let number = 2, next = message; ; number++) {
      try {
        return await this.#post("/v1/half-messages", next, 201);
      } catch (error) {
        if (error.winner === "COMMIT") throw new CommittedError("this transaction id is committed already");
        if (error.winner !== "ROLLBACK" || number > PREPARES) throw error;
      }
      next = { ...message, transaction_id: `${message.transaction_id}/${number}` };
    }
  }

  /** End a message; the answer waits up to 5 s for Kafka. If no answer comes, a check settles it. */
  end(messageId, decision) {
    return this.#post(`/v1/half-messages/${messageId}/end`, { decision }, 200, { prefer: "wait=5" });
  }

  /** Repeat the same request while its result is uncertain. Throws for every other status than `done`. */
  async #post(path, body, done, headers = {}) {
    for (let attempt = 1; ; attempt++) {
      const response = await this.#once(path, body, headers);
      if (response?.status === done) return response.json();
      if (attempt === ATTEMPTS || (response && !AGAIN.has(response.status))) {
        throw await this.#refusal(response);
      }
      const asked = Number(response?.headers.get("retry-after") ?? 0) * 1000;
      await new Promise((resolve) => setTimeout(resolve, Math.max(asked, 100 * 2 ** attempt * Math.random())));
    }
  }

  /** Return the error of an answer, or of none; `winner` is the decision of a message that is ended. */
  async #refusal(response) {
    if (!response) return new Error(`the outbox at ${this.url}: does not answer`);
    const text = await response.text();
    const error = new Error(`the outbox at ${this.url}: ${response.status}: ${text}`);
    const isProblem = response.headers.get("content-type") === "application/problem+json";
    return Object.assign(error, { winner: isProblem ? JSON.parse(text).winning_decision : undefined });
  }

  /** Return the response, or undefined when none came. */
  async #once(path, body, headers) {
    try {
      return await fetch(this.url + path, {
        method: "POST",
        redirect: "manual", // a redirected POST would become a GET, which is answered with 200
        headers: { ...this.headers, ...headers },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
    } catch {
      return undefined;
    }
  }
}
