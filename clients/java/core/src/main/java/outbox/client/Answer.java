package outbox.client;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.util.Set;

/** One answer of the outbox: to a request, or to one item of a batch. */
record Answer(int status, JsonNode members, boolean replayed, long retryAfterSeconds) {
  static final ObjectMapper JSON =
      JsonMapper.builder()
          .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
          .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
          .build();

  private static final Set<Integer> UNCERTAIN = Set.of(408, 429, 500, 502, 503, 504);

  static Answer of(HttpResponse<byte[]> response) {
    var headers = response.headers();
    boolean replayed = headers.firstValue("idempotency-replayed").orElse("").equals("true");
    String seconds = headers.firstValue("retry-after").orElse("");
    long wait = seconds.matches("\\d{1,9}") ? Long.parseLong(seconds) : 0;
    return new Answer(response.statusCode(), parsed(response.body()), replayed, wait);
  }

  /** Returns the answer to one item of this batch; one that is missing has the status 0. */
  Answer item(int index) {
    JsonNode item = members.path("items").path(index);
    JsonNode own = item.has("result") ? item.get("result") : item.path("problem");
    boolean again = item.path("replayed").asBoolean();
    return new Answer(item.path("status").asInt(), own, again, retryAfterSeconds);
  }

  /** Returns whether the same request may get another answer later. */
  boolean isRetryable() {
    return UNCERTAIN.contains(status) || members.path("retryable").asBoolean();
  }

  /** Reads the members of a success; throws what the answer refuses. */
  <T> T read(int success, Class<T> type) {
    if (status == success && members.has("message_id")) {
      return JSON.convertValue(members, type);
    }
    throw members.path("code").asText().equals("already-ended")
        ? new OutboxException.AlreadyEnded(this)
        : new OutboxException.Refused(this);
  }

  @Override
  public String toString() {
    return members.has("code")
        ? status + " " + members.get("code").asText() + ": " + members.path("detail").asText()
        : "HTTP " + status + " with a body that is not of the outbox";
  }

  static byte[] bytes(Object json) {
    try {
      return JSON.writeValueAsBytes(json);
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException("a text that is not Unicode", error);
    }
  }

  private static JsonNode parsed(byte[] body) {
    try {
      return JSON.readTree(body);
    } catch (IOException html) {
      return MissingNode.getInstance();
    }
  }
}
