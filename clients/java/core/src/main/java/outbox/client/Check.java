package outbox.client;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Instant;

/**
 * A question of the outbox: what became of this local transaction?
 *
 * @param transactionId your name for it
 * @param preparedAt by the clock of the outbox
 * @param data all members of the check, such as {@code key}, {@code headers} and {@code attempt}
 */
public record Check(
    String messageId,
    String transactionId,
    String producerGroup,
    Instant preparedAt,
    JsonNode data) {}
