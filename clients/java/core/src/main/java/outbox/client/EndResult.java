package outbox.client;

import com.fasterxml.jackson.databind.JsonNode;

/**
 * The answer to an end.
 *
 * @param decision the first decision, which stays; null while there is none
 * @param decidedBy producer, check, operator, policy or recovery
 * @param publication topic, partition and offset of the record, once Kafka has it; else null
 */
public record EndResult(
    String messageId, String state, Decision decision, String decidedBy, JsonNode publication) {}
