import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;

/** Prepares and ends messages over HTTP. Every request may be repeated: the service recognises it. */
final class Outbox {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Set<Integer> UNCERTAIN = Set.of(408, 429, 500, 502, 503, 504);
  private static final int ATTEMPTS = 5;
  private static final int PREPARES = 3;

  /** What runs between prepare and end. */
  interface LocalTransaction {
    void run(String messageId) throws Exception;
  }

  /**
   * The local transaction is committed, but its message's end is not confirmed: do not run the local
   * transaction again. If the service did not answer, a check settles the message. If it answered
   * {@code already-ended}, somebody else has rolled the message back.
   */
  static final class EndException extends Exception {
    private static final long serialVersionUID = 1;
    final String messageId;

    EndException(String messageId, Exception cause) {
      super(
          "the local transaction is committed, but not the end of message "
              + messageId
              + ": "
              + cause.getMessage(),
          cause);
      this.messageId = messageId;
    }
  }

  /** The transaction id is committed: nothing is left to do, read your own row. */
  static final class CommittedException extends Exception {
    private static final long serialVersionUID = 1;

    CommittedException(Exception cause) {
      super("this transaction id is committed already", cause);
    }
  }

  /** An answer that a repeated request would get again; {@code winner} decided an ended message. */
  private static final class Refused extends IllegalStateException {
    private static final long serialVersionUID = 1;
    final String winner;

    Refused(HttpResponse<byte[]> answer) throws IOException {
      super(answer.statusCode() + ": " + new String(answer.body()));
      winner =
          answer.statusCode() == 409
              ? JSON.readTree(answer.body()).path("winning_decision").asText()
              : "";
    }
  }

  private final HttpClient http =
      HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(2)).build();
  private final String url;
  private final String key;

  /** Takes the address of the service, and an API key, or null where no key is needed. */
  Outbox(String url, String key) {
    this.url = url;
    this.key = key;
  }

  /**
   * Prepares a message, runs the local transaction, and ends the message with COMMIT. If the local
   * transaction fails, nothing is ended: the check finds out what became of it. If the end fails,
   * this throws an {@link EndException}; every other exception comes from before the local commit, or
   * from the local transaction itself. A {@link CommittedException} comes instead of a second run of
   * a local transaction that is committed.
   */
  JsonNode send(Map<String, ?> message, LocalTransaction local) throws Exception {
    String messageId = prepare(message).get("message_id").asText();
    local.run(messageId);
    try {
      return end(messageId, "COMMIT");
    } catch (IOException | IllegalStateException | InterruptedException error) {
      if (error instanceof InterruptedException) {
        Thread.currentThread().interrupt();
      }
      throw new EndException(messageId, error);
    }
  }

  /**
   * Stores a half message. If one with this transaction id is rolled back, nothing of it is committed
   * and nothing can be any more: the next one has the transaction id ID/2, then ID/3.
   */
  private JsonNode prepare(Map<String, ?> message) throws Exception {
    Map<String, Object> next = new HashMap<>(message);
    for (int number = 2; ; number++) {
      try {
        return post("/v1/half-messages", next, 201);
      } catch (Refused ended) {
        if (ended.winner.equals("COMMIT")) {
          throw new CommittedException(ended);
        }
        if (!ended.winner.equals("ROLLBACK") || number > PREPARES) {
          throw ended;
        }
      }
      next.put("transaction_id", message.get("transaction_id") + "/" + number);
    }
  }

  /** Ends a message; the answer waits up to 5 s for Kafka. If no answer comes, a check settles it. */
  JsonNode end(String messageId, String decision) throws IOException, InterruptedException {
    return post("/v1/half-messages/" + messageId + "/end", Map.of("decision", decision), 200);
  }

  /** Repeats the same request while its result is uncertain; every other status than done is an error. */
  private JsonNode post(String path, Map<String, ?> body, int done)
      throws IOException, InterruptedException {
    HttpRequest request = request(path, JSON.writeValueAsBytes(body));
    IOException last = null;
    for (int attempt = 1; attempt <= ATTEMPTS; attempt++) {
      long waitMillis = ThreadLocalRandom.current().nextLong(100L << attempt);
      try {
        HttpResponse<byte[]> answer = http.send(request, BodyHandlers.ofByteArray());
        if (answer.statusCode() == done) {
          return JSON.readTree(answer.body());
        }
        if (!UNCERTAIN.contains(answer.statusCode())) {
          throw new Refused(answer);
        }
        last = new IOException(answer.statusCode() + ": " + new String(answer.body()));
        waitMillis = Math.max(waitMillis, 1000 * answer.headers().firstValueAsLong("retry-after").orElse(0));
      } catch (IOException noAnswer) {
        last = new IOException("the outbox at " + url + " does not answer", noAnswer);
      }
      Thread.sleep(waitMillis);
    }
    throw last;
  }

  private HttpRequest request(String path, byte[] body) {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create(url + path))
            .timeout(Duration.ofSeconds(10))
            .header("content-type", "application/json")
            .header("prefer", "wait=5") // a prepare ignores it
            .POST(BodyPublishers.ofByteArray(body));
    return key == null ? request.build() : request.header("authorization", "Bearer " + key).build();
  }
}
