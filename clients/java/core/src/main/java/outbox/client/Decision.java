package outbox.client;

/** What became of a local transaction. UNKNOWN decides nothing: the outbox asks later. */
public enum Decision { COMMIT, ROLLBACK, UNKNOWN }
