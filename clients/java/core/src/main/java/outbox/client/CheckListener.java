package outbox.client;

/** Finds out what became of a local transaction. */
@FunctionalInterface
public interface CheckListener {
  /** Looks into the database, never into memory. An exception is answered UNKNOWN. */
  Verdict check(Check check) throws Exception;
}
