/** No answer came in time. After a prepare run no local transaction. */
export class NoAnswerError extends Error {
  constructor(cause) {
    super("the outbox does not answer", { cause });
  }
}

/** An answer that refuses a request. Without `code` it does not come from the outbox. */
export class RefusedError extends Error {
  constructor(status, problem) {
    super(`${status} ${problem.code ?? ""}: ${problem.title ?? "not an answer of the outbox"} ${problem.detail ?? ""}`);
    this.status = status;
    this.code = problem.code;
    this.winningDecision = problem.winning_decision;
  }
}

/** This transaction id is committed already. Nothing is left to do: read your own rows. */
export class CommittedError extends RefusedError {}

/**
 * The local transaction is committed, but the end of its message is not confirmed: do not run the local transaction
 * again. A check settles the message, unless the cause has `winningDecision` ROLLBACK: an operator has rolled it back.
 */
export class EndError extends Error {
  constructor(messageId, cause) {
    super(`the local transaction is committed, but not the end of message ${messageId}: ${cause.message}`, { cause });
    this.messageId = messageId;
  }
}

/** A check was answered ROLLBACK before the commit, or another call has committed. Roll back. */
export class FencedError extends Error {
  constructor(messageId, cause) {
    super(`the barrier has a row for message ${messageId}: roll back`, { cause });
  }
}
