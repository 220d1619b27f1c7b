package outbox.client;

import java.time.Duration;

/**
 * The answer to a check.
 *
 * @param reason text for operators, or null
 * @param retryAfter after UNKNOWN, the earliest next check (up to an hour), or null
 */
public record Verdict(Decision decision, String reason, Duration retryAfter) {
  public static final Verdict COMMIT = new Verdict(Decision.COMMIT, null, null);
  public static final Verdict ROLLBACK = new Verdict(Decision.ROLLBACK, null, null);

  public static Verdict unknown(String reason) {
    return new Verdict(Decision.UNKNOWN, reason, null);
  }
}
