package outbox.client;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * One event, published if and only if its local transaction commits. Immutable: each method returns
 * a changed copy.
 *
 * <p>A message has a random transaction id unless it gets one of your business. By it a repeated
 * prepare finds the same message.
 */
public final class Message {
  static final ObjectMapper JSON = new ObjectMapper();

  /** Members of a prepare that several messages under one decision have in common. */
  private static final List<String> COMMON =
      List.of("producer_group", "transaction_id", "check_immunity_seconds", "messages");

  private final ObjectNode members;

  private Message(ObjectNode members) {
    this.members = members;
  }

  /** Takes a value as text; null is a tombstone, which deletes its key from a compacted topic. */
  public static Message of(String topic, String value) {
    return of(topic).with("value", value);
  }

  /** Takes a value as bytes, as a serializer returns them. */
  public static Message of(String topic, byte[] value) {
    return of(topic).with("value_base64", value);
  }

  private static Message of(String topic) {
    ObjectNode members = JSON.createObjectNode().put("topic", topic);
    return new Message(members).transactionId(UUID.randomUUID().toString());
  }

  /** Records of one key keep their order. */
  public Message key(String key) {
    return with("key", key);
  }

  /** Adds a header of the record; null is a null. */
  public Message header(String name, byte[] value) {
    ObjectNode headers = members.deepCopy().withObject("/headers");
    Object header = value == null ? null : Map.of("base64", value);
    return with("headers", headers.set(name, JSON.valueToTree(header)));
  }

  /** Names the local transaction, for example by the number of an invoice. */
  public Message transactionId(String transactionId) {
    return with("transaction_id", transactionId);
  }

  /** Adds a message under the decision and the transaction id of this one. */
  public Message followedBy(Message other) {
    ArrayNode followers = members.deepCopy().withArray("/messages");
    return with("messages", followers.add(other.content()));
  }

  /** Sets another member of a prepare, such as {@code key_base64}, {@code partition}, {@code tags}. */
  public Message with(String member, Object value) {
    ObjectNode changed = JSON.createObjectNode().setAll(members);
    return new Message(changed.set(member, JSON.valueToTree(value)));
  }

  String transactionId() {
    return members.get("transaction_id").asText();
  }

  ObjectNode prepareOf(String producerGroup) {
    ObjectNode body = members.deepCopy().put("producer_group", producerGroup);
    if (body.get("messages") instanceof ArrayNode messages) {
      messages.insert(0, content());
      body.retain(COMMON);
    }
    return body;
  }

  private ObjectNode content() {
    return members.deepCopy().remove(COMMON);
  }
}
