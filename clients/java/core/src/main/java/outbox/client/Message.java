package outbox.client;

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
    ObjectNode members = Answer.JSON.createObjectNode().put("topic", topic);
    return new Message(members).transactionId(UUID.randomUUID().toString());
  }

  /** Records of one key keep their order. */
  public Message key(String key) {
    return with("key", key);
  }

  public Message key(byte[] key) {
    return with("key_base64", key);
  }

  /** Adds a header of the record; a null stays null. */
  public Message header(String name, String value) {
    return withHeader(name, value);
  }

  public Message header(String name, byte[] value) {
    return withHeader(name, Map.of("base64", value));
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

  /** Sets another member of a prepare, such as {@code partition}, {@code tags}, {@code content_type}. */
  public Message with(String member, Object value) {
    return new Message(members.deepCopy().set(member, Answer.JSON.valueToTree(value)));
  }

  String transactionId() {
    return members.get("transaction_id").asText();
  }

  /** Returns how many messages this one counts for in a request. */
  int count() {
    return 1 + members.path("messages").size();
  }

  byte[] prepareOf(String producerGroup) {
    ObjectNode body = members.deepCopy().put("producer_group", producerGroup);
    if (body.get("messages") instanceof ArrayNode messages) {
      messages.insert(0, content());
      body.retain(COMMON);
    }
    return Answer.bytes(body);
  }

  private ObjectNode content() {
    return members.deepCopy().remove(COMMON);
  }

  private Message withHeader(String name, Object value) {
    ObjectNode headers = members.deepCopy().withObject("/headers");
    return with("headers", headers.set(name, Answer.JSON.valueToTree(value)));
  }
}
