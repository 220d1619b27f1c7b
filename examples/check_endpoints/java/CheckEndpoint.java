import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;

/**
 * A check endpoint in Java (with Jackson): verifies the signature, looks up the transaction, answers.
 *
 * <pre>
 * java CheckEndpoint serve          PORT, PRODUCER_GROUP, CHECK_SECRET, TRANSACTIONS
 * java CheckEndpoint verify SECRET ID TIMESTAMP SIGNATURES NOW  &lt; body      exit 0 or 1
 * </pre>
 */
public final class CheckEndpoint {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int BODY_MAX_BYTES = 16 * 1024 * 1024;

  /** Reads the group's database. */
  interface Decide {
    String decide(String transactionId) throws Exception;
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

  CheckEndpoint(String group, Signature signature, Decide decide) {
    this.group = group;
    this.signature = signature;
    this.decide = decide;
  }

  void handle(HttpExchange exchange) throws IOException {
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
    List<JsonNode> verdicts = new ArrayList<>();
    for (JsonNode check : checks) {
      if (!check.path("producer_group").asText().equals(group)) {
        throw new Refused(403, "a check of another producer group");
      }
      verdicts.add(verdict(check));
    }
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

  /**
   * Answers UNKNOWN in every doubtful case: an error, or a transaction that is not found (yet). Only
   * a barrier turns "not found" into ROLLBACK.
   */
  private ObjectNode verdict(JsonNode check) {
    ObjectNode verdict = JSON.createObjectNode();
    verdict.put("message_id", check.path("message_id").asText());
    try {
      return verdict.put("decision", decide.decide(check.path("transaction_id").asText()));
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

  /** Replaces the lookup in your database: lines of a transaction id and its decision. */
  private static String fromFile(String transactionId) throws IOException {
    for (String line : Files.readAllLines(Path.of(System.getenv("TRANSACTIONS")))) {
      String[] fields = line.split(" ");
      if (fields.length == 2 && fields[0].equals(transactionId)) {
        return fields[1];
      }
    }
    return "UNKNOWN";
  }

  private static void serve() throws IOException {
    int port = Integer.parseInt(System.getenv("PORT"));
    Signature signature = new Signature(System.getenv("CHECK_SECRET"));
    String group = System.getenv("PRODUCER_GROUP");
    CheckEndpoint endpoint = new CheckEndpoint(group, signature, CheckEndpoint::fromFile);
    InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
    HttpServer server = HttpServer.create(address, 0);
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.createContext("/", endpoint::handle);
    server.start();
  }

  /** Runs one of the two subcommands above. */
  public static void main(String[] arguments) throws Exception {
    if (arguments.length == 1 && arguments[0].equals("serve")) {
      serve();
    } else if (arguments.length == 6 && arguments[0].equals("verify")) {
      byte[] body = System.in.readAllBytes();
      long now = Long.parseLong(arguments[5]);
      Signature signature = new Signature(arguments[1]);
      System.exit(signature.fits(arguments[2], arguments[3], arguments[4], body, now) ? 0 : 1);
    } else {
      System.err.println("usage: CheckEndpoint serve | verify SECRET ID TIMESTAMP SIGNATURES NOW");
      System.exit(2);
    }
  }
}
