package outbox.client;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.standardwebhooks.Webhook;
import com.standardwebhooks.exceptions.WebhookVerificationException;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * Answers the checks of one producer group, with the server of the JDK or behind any other: verifies
 * the signature, asks the listener in threads of its own, and answers in time. Every doubtful case is
 * UNKNOWN. During a rotation the service signs with both secrets.
 */
public final class CheckEndpoint implements HttpHandler {
  private static final int BODY_MAX_BYTES = 16 * 1024 * 1024;
  private static final int THREADS = 16;
  private static final System.Logger LOG = System.getLogger("outbox.client");

  /** Asks what became of a local transaction; {@code data} has all members of the check. */
  public record Check(String messageId, Instant preparedAt, JsonNode data) {}

  /** Finds out what became of a local transaction. */
  public interface Listener {
    /** Looks into the database, never into memory. An exception is answered UNKNOWN. */
    Decision check(Check check) throws Exception;
  }

  /** The response to send; its body is JSON. */
  public record Reply(int status, byte[] body) {}

  private final String group;
  private final Webhook verifier;
  private final Listener listener;
  private final ExecutorService threads = Executors.newWorkStealingPool(THREADS); // they are daemons

  /** Takes the group's check secret. */
  public CheckEndpoint(String producerGroup, String secret, Listener listener) {
    if (!secret.matches("whsec_.+")) {
      throw new IllegalArgumentException("a check secret is whsec_ and base64, and not empty");
    }
    this.group = producerGroup;
    this.verifier = new Webhook(secret);
    this.listener = listener;
  }

  @Override
  public void handle(HttpExchange exchange) throws IOException {
    try (exchange) {
      Reply reply = answer(exchange.getRequestHeaders(), exchange.getRequestBody());
      exchange.getResponseHeaders().set("content-type", "application/json");
      exchange.sendResponseHeaders(reply.status(), reply.body().length);
      exchange.getResponseBody().write(reply.body());
    }
  }

  /** Answers one request with any server: 401 unsigned, 400 unreadable, 403 of another group. */
  public Reply answer(Map<String, List<String>> headers, InputStream input) throws IOException {
    byte[] body = input.readNBytes(BODY_MAX_BYTES + 1);
    if (body.length > BODY_MAX_BYTES) {
      return refusal(413);
    }
    Map<String, List<String>> given = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    given.putAll(headers);
    try {
      verifier.verify(new String(body, StandardCharsets.UTF_8), given);
      return answer(Message.JSON.readTree(body));
    } catch (WebhookVerificationException forged) {
      return refusal(401);
    } catch (JsonProcessingException | DateTimeException unreadable) {
      return refusal(400);
    }
  }

  private Reply answer(JsonNode request) throws IOException {
    boolean isBatch = request.path("type").asText().equals("transaction.check.batch");
    JsonNode data = request.path("data");
    List<Check> checks = new ArrayList<>();
    for (JsonNode each : isBatch ? data.path("checks") : List.of(data)) {
      checks.add(new Check(each.path("message_id").asText(), time(each, "prepared_at"), each));
      if (!each.path("producer_group").asText().equals(group)) {
        return refusal(403);
      }
    }
    if (checks.isEmpty()) {
      return refusal(400);
    }
    Instant replyBy = time(checks.get(0).data, "reply_by");
    long millis = Duration.between(time(request, "timestamp"), replyBy).toMillis() * 9 / 10;
    var decided = checks.stream().map(check -> verdict(check, millis)).toList();
    var verdicts = decided.stream().map(CompletableFuture::join).toList();
    Object answer = isBatch ? Map.of("verdicts", verdicts) : verdicts.get(0);
    return new Reply(200, Message.JSON.writeValueAsBytes(answer));
  }

  private static Reply refusal(int status) {
    return new Reply(status, "{}".getBytes(StandardCharsets.US_ASCII));
  }

  private static Instant time(JsonNode members, String name) {
    return Instant.parse(members.path(name).asText());
  }

  /** Decides in another thread: each check may wait for an open local transaction. */
  private CompletableFuture<Map<String, ?>> verdict(Check check, long millis) {
    return CompletableFuture.supplyAsync(() -> decide(check), threads)
        .completeOnTimeout(Decision.UNKNOWN, millis, TimeUnit.MILLISECONDS)
        .thenApply(decision -> Map.of("message_id", check.messageId(), "decision", decision));
  }

  private Decision decide(Check check) {
    try {
      return listener.check(check);
    } catch (Exception failed) {
      LOG.log(System.Logger.Level.ERROR, "no answer to a check of " + check.messageId(), failed);
      return Decision.UNKNOWN;
    }
  }
}
