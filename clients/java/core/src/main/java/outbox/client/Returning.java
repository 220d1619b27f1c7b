package outbox.client;

/** Counts the callers that were answered together, and are expected to come again. */
final class Returning {
  private static final int PAUSE_SHARE = 5;
  private static final long PAUSE_MAX_NANOS = 5_000_000;
  private static final long FORGOTTEN_NANOS = 100_000_000;

  private int callers;
  private long answeredAt;
  private long pauseNanos;

  synchronized void came() {
    boolean forgotten = System.nanoTime() - answeredAt > FORGOTTEN_NANOS;
    callers = forgotten ? 0 : Math.max(0, callers - 1);
  }

  synchronized boolean areExpected() {
    return callers > 0;
  }

  synchronized void expectNone() {
    callers = 0;
  }

  /** Returns how long to wait for the next of them: a fifth of what the last request took. */
  synchronized long pauseNanos() {
    return pauseNanos;
  }

  /** Notes the end of a request. A single call expects no other. */
  synchronized void answered(int calls, long nanos) {
    callers += calls > 1 ? calls : 0;
    answeredAt = System.nanoTime();
    pauseNanos = Math.min(nanos / PAUSE_SHARE, PAUSE_MAX_NANOS);
  }
}
