package outbox.client;

import com.fasterxml.jackson.databind.JsonNode;

/** The outbox could not execute a call. A plain one means that no complete answer came. */
public class OutboxException extends RuntimeException {
  private static final long serialVersionUID = 1;
  private final boolean isRetryable;

  OutboxException(String message, Throwable cause, boolean isRetryable) {
    super(message, cause);
    this.isRetryable = isRetryable;
  }

  /** Returns whether the same call may succeed later. */
  public boolean isRetryable() {
    return isRetryable;
  }

  /** The outbox, or a proxy before it, refused the request. */
  public static class Refused extends OutboxException {
    private static final long serialVersionUID = 1;
    private final transient Answer answer;

    Refused(Answer answer) {
      super(answer.toString(), null, answer.isRetryable());
      this.answer = answer;
    }

    /** Returns the HTTP status. */
    public int status() {
      return answer.status();
    }

    /** Returns the members of the problem, such as {@code code}; empty if a proxy answered. */
    public JsonNode problem() {
      return answer.members();
    }
  }

  /**
   * The message is decided. After a prepare run no local transaction: after COMMIT it is done, so
   * read your own rows; after ROLLBACK this transaction id is rolled back for ever.
   */
  public static final class AlreadyEnded extends Refused {
    private static final long serialVersionUID = 1;

    AlreadyEnded(Answer answer) {
      super(answer);
    }

    /** Returns the decision that stays. */
    public Decision winner() {
      return Decision.valueOf(problem().path("winning_decision").asText());
    }
  }

  /** The barrier has a row of this message: the local transaction must roll back. */
  public static final class Fenced extends OutboxException {
    private static final long serialVersionUID = 1;

    Fenced(String messageId, Throwable cause) {
      super("message " + messageId + " already has a barrier row: roll back", cause, false);
    }
  }
}
