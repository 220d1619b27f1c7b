package outbox.client;

/** What runs between prepare and end, in your own database. */
@FunctionalInterface
public interface LocalTransaction<X extends Exception> {
  /**
   * Returns what became of it; null is UNKNOWN. Return ROLLBACK only if no other attempt with this
   * transaction id has committed or still runs.
   */
  Decision run(PreparedMessage prepared) throws X;
}
