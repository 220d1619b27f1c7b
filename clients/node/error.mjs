/**
 * `code` says what happened:
 *
 * - `no-answer`, `refused`: a message is not prepared, or not ended; of a refusal `cause` is the service's problem
 * - `committed`: this transaction id is committed already; nothing is left to do: read your own rows
 * - `rolled-back`: the message is rolled back for ever
 * - `not-ended`: the local transaction is committed, but the end of its message is not confirmed: do not run it again.
 *   A check settles the message, unless the cause is `rolled-back`: an operator has rolled it back
 * - `fenced`: a check was answered ROLLBACK before the commit, or another call has committed: roll back
 */
export class OutboxError extends Error {
  constructor(code, message, cause) {
    super(message, { cause });
    this.code = code;
  }
}
