package outbox.client;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLSocketFactory;
import outbox.client.OutboxException.Reason;

/**
 * Sends messages that are published if and only if their local transaction commits: prepare, local
 * transaction, end, always in that order. All threads share one producer, and their concurrent calls
 * share requests.
 */
public final class TransactionProducer {
  private static final int PREPARES = 3;

  /** Statuses after which a call is repeated; -1 is no HTTP, 0 no answer. */
  private static final Set<Integer> UNCERTAIN = Set.of(-1, 0, 408, 429, 500, 502, 503, 504);

  /** What runs between prepare and end, in your own database. */
  @FunctionalInterface
  public interface LocalTransaction<X extends Exception> {
    void run(String messageId) throws X;
  }

  private final URI url;
  private final String group;
  private final String apiKey;
  private final Duration timeout;
  private final SSLSocketFactory tls;
  private final SharedRequests prepares = new SharedRequests(body -> post("/batch", body));
  private final SharedRequests ends = new SharedRequests(body -> post("/end-batch", body));

  /** Takes the address of the outbox, and a key, or null where the outbox asks for none. */
  public TransactionProducer(String url, String producerGroup, String apiKey) {
    this(url, producerGroup, apiKey, Duration.ofSeconds(10), null);
  }

  /**
   * Takes a limit for each call with its retries, and what opens its TLS connections, for a
   * certificate of your own; null is the default of the JVM.
   */
  public TransactionProducer(
      String url, String producerGroup, String apiKey, Duration timeout, SSLSocketFactory tls) {
    this.url = URI.create(url);
    this.group = producerGroup;
    this.apiKey = apiKey;
    this.timeout = timeout;
    this.tls = tls;
  }

  /**
   * Prepares a message, runs the local transaction in this thread, and ends the message with COMMIT.
   * If the local transaction throws, nothing is ended: a check finds out what became of it. If
   * earlier messages with this transaction id were rolled back, it prepares again as {@code ID/2},
   * then as {@code ID/3}.
   *
   * @throws OutboxException before the local transaction; after it only with NOT_ENDED
   * @throws X from the local transaction
   */
  public <X extends Exception> void send(Message message, LocalTransaction<X> local) throws X {
    String messageId = prepareFirst(message);
    local.run(messageId);
    try {
      end(messageId, Decision.COMMIT);
    } catch (OutboxException cause) {
      throw new OutboxException(Reason.NOT_ENDED, "no end of message " + messageId, cause);
    }
  }

  private String prepareFirst(Message message) {
    Message next = message;
    for (int number = 2; ; number++) {
      try {
        return prepare(next);
      } catch (OutboxException error) {
        if (error.reason() != Reason.ROLLED_BACK || number > PREPARES) {
          throw error;
        }
      }
      next = message.transactionId(message.transactionId() + "/" + number);
    }
  }

  /** Stores a half message, and returns its id. Unless it returns, run no local transaction. */
  public String prepare(Message message) {
    ObjectNode item = message.prepareOf(group);
    return call(prepares, item, Math.max(1, item.path("messages").size()));
  }

  /** Decides a message. Repeating it is safe: the first decision stands. */
  public void end(String messageId, Decision decision) {
    ObjectNode item = Message.JSON.createObjectNode().put("message_id", messageId);
    call(ends, item.put("decision", decision.name()), 1);
  }

  /** Repeats a call while its result is uncertain and the time allows it; returns the message id. */
  private String call(SharedRequests requests, ObjectNode item, int messages) {
    long deadline = System.nanoTime() + timeout.toNanos();
    try {
      for (long longest = 50; ; longest = Math.min(2 * longest, 2000)) {
        JsonNode answer = requests.share(item.toString(), messages, deadline - System.nanoTime());
        if (answer.has("result")) {
          return answer.get("result").get("message_id").asText();
        }
        long jitter = ThreadLocalRandom.current().nextLong(longest);
        long pause = Math.max(jitter, 1000 * answer.path("retry_after").asLong());
        boolean isOver = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(pause) > deadline;
        if (isOver || !UNCERTAIN.contains(answer.path("status").asInt())) {
          throw OutboxException.of(answer);
        }
        Thread.sleep(pause);
      }
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      throw new OutboxException(Reason.NO_ANSWER, "the thread was interrupted", stopped);
    }
  }

  /** Makes one attempt. It waits half the time at most: a dead connection does not use all of it. */
  private JsonNode post(String path, String body) {
    int limit = (int) Math.max(1, timeout.toMillis() / 2);
    try {
      var address = URI.create(url + "/v1/half-messages" + path).toURL();
      var connection = (HttpURLConnection) address.openConnection();
      if (connection instanceof HttpsURLConnection secure && tls != null) {
        secure.setSSLSocketFactory(tls);
      }
      connection.setConnectTimeout(limit);
      connection.setReadTimeout(limit);
      connection.setInstanceFollowRedirects(false); // a redirected POST becomes a GET
      connection.setRequestProperty("content-type", "application/json");
      if (apiKey != null) {
        connection.setRequestProperty("authorization", "Bearer " + apiKey);
      }
      byte[] content = body.getBytes(StandardCharsets.UTF_8);
      connection.setDoOutput(true);
      connection.setFixedLengthStreamingMode(content.length); // the JDK repeats no request by itself
      try (var output = connection.getOutputStream()) {
        output.write(content);
      }
      return read(connection);
    } catch (IOException | RuntimeException error) {
      return Message.JSON.createObjectNode().put("error", error.toString());
    }
  }

  private static JsonNode read(HttpURLConnection connection) throws IOException {
    int status = connection.getResponseCode();
    ObjectNode answer = Message.JSON.createObjectNode().put("status", status);
    answer.put("retry_after", connection.getHeaderField("retry-after"));
    try (var text = status < 400 ? connection.getInputStream() : connection.getErrorStream()) {
      JsonNode members = Message.JSON.readTree(text);
      String place = status == 207 ? "items" : "problem";
      return answer.set(place, status == 207 ? members.path("items") : members);
    } catch (JsonProcessingException | IllegalArgumentException page) {
      return answer; // of a proxy, or empty
    }
  }
}
