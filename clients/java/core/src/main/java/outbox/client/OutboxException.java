package outbox.client;

import com.fasterxml.jackson.databind.JsonNode;

/** A call that did not succeed. */
public final class OutboxException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** What happened. */
  public enum Reason {
    /** No answer came in time. After a prepare run no local transaction. */
    NO_ANSWER,
    /** The outbox, or a proxy before it, has refused the request. */
    REFUSED,
    /** This transaction id is committed already. Nothing is left to do: read your own rows. */
    COMMITTED,
    /** The message is rolled back for ever. */
    ROLLED_BACK,
    /**
     * The local transaction is committed, but the end of its message is not confirmed: do not run it
     * again. A check settles the message, unless an operator has rolled it back (the cause).
     */
    NOT_ENDED,
    /** A check was answered ROLLBACK before the commit, or another call has committed. Roll back. */
    FENCED
  }

  private final Reason reason;

  OutboxException(Reason reason, String message, Throwable cause) {
    super(message, cause);
    this.reason = reason;
  }

  /** Returns the error that an answer of the service is. */
  static OutboxException of(JsonNode answer) {
    if (answer.has("error")) {
      return new OutboxException(Reason.NO_ANSWER, answer.get("error").asText(), null);
    }
    JsonNode problem = answer.path("problem");
    String code = problem.path("code").asText("not an answer of the outbox");
    String text = answer.get("status") + " " + code + ": " + problem.path("detail").asText();
    Reason reason =
        switch (problem.path("winning_decision").asText()) {
          case "COMMIT" -> Reason.COMMITTED;
          case "ROLLBACK" -> Reason.ROLLED_BACK;
          default -> Reason.REFUSED;
        };
    return new OutboxException(reason, text, null);
  }

  public Reason reason() {
    return reason;
  }
}
