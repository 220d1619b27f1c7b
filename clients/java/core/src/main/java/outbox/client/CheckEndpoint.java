package outbox.client;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.standardwebhooks.Webhook;
import com.standardwebhooks.exceptions.WebhookVerificationException;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * Answers the checks of one producer group, behind any web server: verifies the signature, asks the
 * listener in threads of its own, and answers in time. Every doubtful case is UNKNOWN.
 */
public final class CheckEndpoint {
  private static final int BODY_MAX_BYTES = 16 * 1024 * 1024;
  private static final int THREADS = 16;
  private static final int SERVER_THREADS = 32;
  private static final String REQUEST_SECONDS = "30";
  /** The outbox reads 64 KiB of the answer to 100 checks. */
  private static final int REASON_MAX = 80;

  private static final System.Logger LOG = System.getLogger("outbox.client");

  /** The response to send. */
  public record Reply(int status, String contentType, byte[] body) {}

  /** The reason of a refusal. */
  private static final class Refused extends Exception {
    private static final long serialVersionUID = 1;
    private final int status;

    Refused(int status, String title) {
      super(title);
      this.status = status;
    }
  }

  private final String group;
  private final List<Webhook> verifiers;
  private final CheckListener listener;
  private final ExecutorService threads = Executors.newFixedThreadPool(THREADS, CheckEndpoint::daemon);

  /** Takes the group's check secret, or several while one replaces another. */
  public CheckEndpoint(String producerGroup, List<String> secrets, CheckListener listener) {
    if (secrets.isEmpty() || !secrets.stream().allMatch(secret -> secret.matches("whsec_.+"))) {
      throw new IllegalArgumentException("a check secret is whsec_ and base64, and not empty");
    }
    this.group = producerGroup;
    this.verifiers = secrets.stream().map(Webhook::new).toList();
    this.listener = listener;
  }

  /** Answers one request with any server: 401 unsigned, 400 unreadable, 403 of another group. */
  public Reply handle(Map<String, String> headers, InputStream body) throws IOException {
    long received = System.nanoTime();
    try {
      JsonNode request = verified(headers, body.readNBytes(BODY_MAX_BYTES + 1));
      return new Reply(200, "application/json", Answer.bytes(answer(request, received)));
    } catch (Refused refused) {
      var problem = Map.of("status", refused.status, "title", refused.getMessage());
      return new Reply(refused.status, "application/problem+json", Answer.bytes(problem));
    }
  }

  /** Serves on loopback with the server of the JDK; port 0 is any free one. */
  public HttpServer serve(int port) throws IOException {
    // Without a limit connections that send nothing would stop the server for ever.
    System.setProperty("sun.net.httpserver.maxReqTime", REQUEST_SECONDS);
    var address = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
    HttpServer server = HttpServer.create(address, 0);
    server.setExecutor(Executors.newFixedThreadPool(SERVER_THREADS));
    server.createContext("/", this::exchange);
    server.start();
    return server;
  }

  private void exchange(HttpExchange exchange) throws IOException {
    try (exchange) {
      Map<String, String> headers = new TreeMap<>();
      exchange.getRequestHeaders().forEach((name, values) -> headers.put(name, values.get(0)));
      Reply reply = handle(headers, exchange.getRequestBody());
      exchange.getResponseHeaders().set("content-type", reply.contentType());
      exchange.sendResponseHeaders(reply.status(), reply.body().length);
      exchange.getResponseBody().write(reply.body());
    }
  }

  private JsonNode verified(Map<String, String> headers, byte[] body) throws Refused {
    if (body.length > BODY_MAX_BYTES) {
      throw new Refused(413, "the body is too long");
    }
    String text = new String(body, StandardCharsets.UTF_8);
    Map<String, List<String>> given = new TreeMap<>();
    headers.forEach((name, value) -> given.put(name.toLowerCase(Locale.ROOT), List.of(value)));
    if (verifiers.stream().noneMatch(verifier -> isSigned(verifier, text, given))) {
      throw new Refused(401, "the signature is not valid");
    }
    try {
      return Answer.JSON.readTree(text);
    } catch (IOException noJson) {
      throw new Refused(400, "not a check");
    }
  }

  private static boolean isSigned(
      Webhook verifier, String body, Map<String, List<String>> headers) {
    try {
      verifier.verify(body, headers);
      return true;
    } catch (WebhookVerificationException forged) {
      return false;
    }
  }

  private JsonNode answer(JsonNode request, long received) throws Refused {
    boolean isBatch = request.path("type").asText().equals("transaction.check.batch");
    JsonNode data = request.path("data");
    List<Check> checks = new ArrayList<>();
    Duration time;
    try {
      for (JsonNode check : isBatch ? data.path("checks") : List.of(data)) {
        checks.add(read(check));
      }
      // A difference on the clock of the outbox; all checks of a batch have one reply_by.
      JsonNode first = isBatch ? data.path("checks").path(0) : data;
      time = Duration.between(time(request, "timestamp"), time(first, "reply_by"));
    } catch (DateTimeException unreadable) {
      throw new Refused(400, "not a check");
    }
    if (checks.stream().anyMatch(check -> !check.producerGroup().equals(group))) {
      throw new Refused(403, "a check of another producer group");
    }
    ArrayNode verdicts = verdicts(checks, received + time.toNanos() * 9 / 10);
    return isBatch ? Answer.JSON.createObjectNode().set("verdicts", verdicts) : verdicts.get(0);
  }

  private static Check read(JsonNode check) {
    return new Check(
        check.path("message_id").asText(),
        check.path("transaction_id").asText(null),
        check.path("producer_group").asText(),
        time(check, "prepared_at"),
        check);
  }

  private static Instant time(JsonNode members, String name) {
    return Instant.parse(members.path(name).asText());
  }

  /** Asks about several messages at a time: each may wait for an open local transaction. */
  private ArrayNode verdicts(List<Check> checks, long deadline) {
    Verdict late = Verdict.unknown("no answer before reply_by");
    List<CompletableFuture<Verdict>> answers = new ArrayList<>();
    for (Check check : checks) {
      answers.add(
          CompletableFuture.supplyAsync(() -> ask(check), threads)
              .completeOnTimeout(late, deadline - System.nanoTime(), TimeUnit.NANOSECONDS));
    }
    ArrayNode verdicts = Answer.JSON.createArrayNode();
    for (int index = 0; index < checks.size(); index++) {
      verdicts.add(written(checks.get(index), answers.get(index).join()));
    }
    return verdicts;
  }

  private Verdict ask(Check check) {
    try {
      Verdict verdict = listener.check(check);
      return verdict == null ? Verdict.unknown("the listener returned null") : verdict;
    } catch (Exception failed) {
      LOG.log(System.Logger.Level.ERROR, "no answer to a check of " + check.messageId(), failed);
      return Verdict.unknown("the listener threw " + failed.getClass().getSimpleName());
    }
  }

  private static ObjectNode written(Check check, Verdict verdict) {
    ObjectNode item = Answer.JSON.createObjectNode().put("message_id", check.messageId());
    item.put("decision", verdict.decision().name());
    if (verdict.reason() != null) {
      String reason = verdict.reason();
      item.put("reason", reason.substring(0, Math.min(reason.length(), REASON_MAX)));
    }
    if (verdict.retryAfter() != null) {
      item.put("retry_after_seconds", verdict.retryAfter().toSeconds());
    }
    return item;
  }

  private static Thread daemon(Runnable work) {
    Thread thread = new Thread(work, "outbox check");
    thread.setDaemon(true);
    return thread;
  }
}
