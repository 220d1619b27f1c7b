import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;

/** Answers the checks of one producer group: verifies the signature, asks {@link Decide}, answers. */
final class CheckEndpoint {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int BODY_MAX_BYTES = 16 * 1024 * 1024;
  private static final int THREADS = 32;
  private static final int DECIDERS = 8;
  private static final String REQUEST_SECONDS = "30";

  /** Returns COMMIT, ROLLBACK or UNKNOWN from the group's database. */
  interface Decide {
    String decide(String messageId) throws Exception;
  }

  /** The reason of a refusal. */
  static final class Refused extends Exception {
    private static final long serialVersionUID = 1L;

    final int status;

    Refused(int status, String title) {
      super(title);
      this.status = status;
    }
  }

  private final String group;
  private final Signature signature;
  private final Decide decide;
  private final Executor deciders = Executors.newFixedThreadPool(DECIDERS);

  CheckEndpoint(String group, Signature signature, Decide decide) {
    this.group = group;
    this.signature = signature;
    this.decide = decide;
  }

  /** Serves on loopback until the process ends. */
  void serve(int port) throws IOException {
    // The server's defaults are no limit: connections that send nothing would stop it for ever.
    System.setProperty("sun.net.httpserver.maxReqTime", REQUEST_SECONDS);
    System.setProperty("sun.net.httpserver.maxRspTime", REQUEST_SECONDS);
    HttpServer server = listen(port);
    server.setExecutor(Executors.newFixedThreadPool(THREADS));
    server.createContext("/", this::handle);
    server.start();
  }

  private static HttpServer listen(int port) throws IOException {
    try {
      return HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
    } catch (BindException taken) {
      throw new IOException("port " + port + ": " + taken.getMessage(), taken);
    }
  }

  private void handle(HttpExchange exchange) throws IOException {
    try (exchange) {
      try {
        reply(exchange, 200, answer(exchange));
      } catch (Refused refused) {
        reply(exchange, refused.status, problem(refused));
      }
    }
  }

  private JsonNode answer(HttpExchange exchange) throws IOException, Refused {
    byte[] body = exchange.getRequestBody().readNBytes(BODY_MAX_BYTES + 1);
    if (body.length > BODY_MAX_BYTES) {
      throw new Refused(413, "the body is too long");
    }
    if (!isSigned(exchange.getRequestHeaders(), body)) {
      throw new Refused(401, "the signature is not valid");
    }
    JsonNode asked = parsed(body);
    boolean batch = asked.path("type").asText().equals("transaction.check.batch");
    List<JsonNode> checks = new ArrayList<>();
    if (batch) {
      asked.path("data").path("checks").forEach(checks::add);
    } else {
      checks.add(asked.path("data"));
    }
    for (JsonNode check : checks) {
      if (!check.path("producer_group").asText().equals(group)) {
        throw new Refused(403, "a check of another producer group");
      }
    }
    List<ObjectNode> verdicts = verdicts(checks);
    return batch ? JSON.createObjectNode().set("verdicts", JSON.valueToTree(verdicts)) : verdicts.get(0);
  }

  private boolean isSigned(Headers headers, byte[] body) throws Refused {
    long now = System.currentTimeMillis() / 1000;
    String id = headers.getFirst("webhook-id");
    String timestamp = headers.getFirst("webhook-timestamp");
    try {
      return signature.fits(id, timestamp, headers.getFirst("webhook-signature"), body, now);
    } catch (java.security.GeneralSecurityException missing) {
      throw new Refused(503, "HMAC-SHA256 is not available");
    }
  }

  private static JsonNode parsed(byte[] body) throws Refused {
    try {
      return JSON.readTree(body);
    } catch (IOException noJson) {
      throw new Refused(400, "not a check");
    }
  }

  /** Answers several checks at a time: each may wait for an open local transaction. */
  private List<ObjectNode> verdicts(List<JsonNode> checks) {
    List<CompletableFuture<ObjectNode>> answers = new ArrayList<>();
    for (JsonNode check : checks) {
      answers.add(CompletableFuture.supplyAsync(() -> verdict(check), deciders));
    }
    return answers.stream().map(CompletableFuture::join).toList();
  }

  /** Answers UNKNOWN in every doubtful case: the service asks again. */
  private ObjectNode verdict(JsonNode check) {
    ObjectNode verdict = JSON.createObjectNode();
    String messageId = check.path("message_id").asText();
    verdict.put("message_id", messageId);
    try {
      return verdict.put("decision", decide.decide(messageId));
    } catch (Exception inDoubt) {
      return verdict.put("decision", "UNKNOWN").put("reason", "the database did not answer");
    }
  }

  private static JsonNode problem(Refused refused) {
    return JSON.createObjectNode().put("status", refused.status).put("title", refused.getMessage());
  }

  private static void reply(HttpExchange exchange, int status, JsonNode body) throws IOException {
    byte[] bytes = JSON.writeValueAsBytes(body);
    exchange.getResponseHeaders().set("content-type", "application/json");
    exchange.sendResponseHeaders(status, bytes.length);
    exchange.getResponseBody().write(bytes);
  }
}
