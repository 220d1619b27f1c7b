package outbox.client;

/**
 * A half message that the outbox has stored: durable, and invisible until it is ended.
 *
 * @param preparedAt by the clock of the outbox (RFC 3339)
 * @param replayed an earlier prepare had stored it, so its local transaction may have run
 */
public record PreparedMessage(
    String messageId, String transactionId, String state, String preparedAt, boolean replayed) {

  PreparedMessage replayed(boolean was) {
    return new PreparedMessage(messageId, transactionId, state, preparedAt, was);
  }
}
