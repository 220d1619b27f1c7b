package outbox.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Scanner;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.mariadb.jdbc.MariaDbDataSource;
import org.postgresql.ds.PGSimpleDataSource;
import outbox.client.Barrier;
import outbox.client.CheckEndpoint;
import outbox.client.Decision;
import outbox.client.Message;
import outbox.client.OutboxException;
import outbox.client.TransactionProducer;

/** Does what the conformance kit asks: a command a line as JSON, and an answer a line. */
public final class Driver {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final ExecutorService THREADS = Executors.newFixedThreadPool(64);

  public static void main(String[] arguments) throws Exception {
    var lines = new Scanner(System.in);
    while (lines.hasNextLine()) {
      Object answer;
      try {
        answer = answer(JSON.readTree(lines.nextLine()));
      } catch (Exception error) {
        answer = Map.of("error", String.valueOf(error.getMessage()));
      }
      System.out.println(JSON.writeValueAsString(answer));
    }
    System.exit(0);
  }

  private static Map<String, ?> answer(JsonNode asked) throws Exception {
    return switch (asked.get("do").asText()) {
      case "send" -> Map.of("results", send(asked));
      case "serve" -> Map.of("url", serve(asked));
      case "record" -> Map.of("outcome", record(asked));
      default -> Map.of("deleted", barrier(asked).purge(Duration.ofDays(asked.get("days").asLong())));
    };
  }

  private static List<Map<String, ?>> send(JsonNode asked) throws Exception {
    var limit = Duration.ofMillis((long) (1000 * asked.get("seconds").asDouble()));
    String url = asked.get("url").asText();
    var producer = new TransactionProducer(url, asked.get("group").asText(), null, limit, null);
    List<Callable<Map<String, ?>>> calls = new ArrayList<>();
    for (JsonNode id : asked.get("transaction_ids")) {
      var message = message(asked).transactionId(id.asText());
      calls.add(() -> sendOne(producer, message, asked.get("local").asText()));
    }
    List<Map<String, ?>> results = new ArrayList<>();
    for (Future<Map<String, ?>> result : THREADS.invokeAll(calls)) {
      results.add(result.get());
    }
    return results;
  }

  private static Message message(JsonNode asked) throws IOException {
    byte[] value = asked.get("value").binaryValue();
    var message =
        value == null ? Message.of("invoices", (String) null) : Message.of("invoices", value);
    if (!asked.get("key").isNull()) {
      message = message.with("key_base64", asked.get("key").binaryValue());
    }
    for (var names = asked.get("headers").fieldNames(); names.hasNext(); ) {
      String name = names.next();
      message = message.header(name, asked.get("headers").get(name).binaryValue());
    }
    for (JsonNode follower : asked.get("followers")) {
      message = message.followedBy(Message.of("invoices", follower.binaryValue()));
    }
    return message;
  }

  private static Map<String, ?> sendOne(
      TransactionProducer producer, Message message, String local) {
    var ran = new AtomicInteger();
    String outcome;
    try {
      producer.send(message, messageId -> {
        ran.incrementAndGet();
        if (local.equals("fail")) {
          throw new IllegalStateException("local");
        }
      });
      outcome = "ended";
    } catch (OutboxException error) {
      String reason = error.reason().name().toLowerCase(Locale.ROOT).replace('_', ' ');
      outcome = reason.equals("not ended") ? "end failed" : reason;
    } catch (IllegalStateException error) {
      outcome = error.getMessage();
    }
    return Map.of("outcome", outcome, "ran", ran.get());
  }

  private static String serve(JsonNode asked) throws Exception {
    CheckEndpoint.Listener fixed = check -> Decision.valueOf(asked.get("verdict").asText());
    CheckEndpoint.Listener listener = asked.has("database") ? barrier(asked)::check : fixed;
    var address = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
    var server = HttpServer.create(address, 0);
    server.setExecutor(THREADS);
    var group = asked.get("group").asText();
    server.createContext("/", new CheckEndpoint(group, asked.get("secret").asText(), listener));
    server.start();
    return "http://127.0.0.1:" + server.getAddress().getPort() + "/outbox/check";
  }

  private static String record(JsonNode asked) throws Exception {
    Barrier barrier = barrier(asked);
    try (var connection = database(asked.get("database")).getConnection()) {
      connection.setAutoCommit(false);
      barrier.record(connection, asked.get("message_id").asText());
      connection.commit();
      return "recorded";
    } catch (OutboxException fenced) {
      return "fenced";
    }
  }

  private static Barrier barrier(JsonNode asked) throws Exception {
    var barrier = new Barrier(asked.get("group").asText(), database(asked.get("database")));
    barrier.createTable();
    return barrier;
  }

  private static DataSource database(JsonNode place) throws Exception {
    if (place.get("kind").asText().equals("mysql")) {
      String socket = place.get("socket").asText();
      return new MariaDbDataSource("jdbc:mariadb://localhost/test?user=root&localSocket=" + socket);
    }
    var database = new PGSimpleDataSource();
    String url = place.get("url").asText();
    database.setUrl(url.replaceFirst(".*//(.*):(.*)@(.*)", "jdbc:postgresql://$3?user=$1&password=$2"));
    return database;
  }
}
