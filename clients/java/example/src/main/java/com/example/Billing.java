package com.example;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.sql.Connection;
import java.util.List;
import java.util.Map;
import org.postgresql.ds.PGSimpleDataSource;
import outbox.client.Barrier;
import outbox.client.CheckEndpoint;
import outbox.client.Decision;
import outbox.client.Message;
import outbox.client.OutboxException;
import outbox.client.TransactionProducer;

/** Issues invoices ("issue NUMBER [forget]"), and answers the checks of their messages ("serve"). */
public final class Billing {
  private static final Map<String, String> ENV = System.getenv();
  private static final String GROUP = ENV.getOrDefault("PRODUCER_GROUP", "billing");

  public static void main(String[] arguments) throws Exception {
    var database = new PGSimpleDataSource(); // a service takes a pool
    database.setUrl(ENV.get("JDBC_URL"));
    var barrier = new Barrier(GROUP, database);
    barrier.createTable();
    if (arguments[0].equals("serve")) {
      var secrets = List.of(ENV.get("CHECK_SECRET"));
      int port = Integer.parseInt(ENV.getOrDefault("PORT", "9000"));
      new CheckEndpoint(GROUP, secrets, barrier::check).serve(port);
      return;
    }
    var number = arguments[1];
    var message =
        Message.of("invoices.issued", "{\"invoice\":" + number + "}")
            .key("cust-58")
            .transactionId("invoice-" + number);
    var outbox = new TransactionProducer(ENV.get("OUTBOX_API_URL"), GROUP, ENV.get("OUTBOX_API_KEY"));
    try (outbox; var connection = database.getConnection()) {
      run(connection, "CREATE TABLE IF NOT EXISTS invoice (number bigint PRIMARY KEY)");
      connection.setAutoCommit(false); // closing the connection without a commit rolls back
      var ended = outbox.sendInTransaction(message, 3, 5, prepared -> {
        run(connection, "INSERT INTO invoice VALUES (" + Long.parseLong(number) + ")");
        barrier.record(connection, prepared.messageId());
        connection.commit();
        if (arguments.length > 2) {
          System.exit(0); // "forget": as if the process had died here
        }
        return Decision.COMMIT;
      });
      System.out.println(new ObjectMapper().writeValueAsString(ended));
    } catch (OutboxException.AlreadyEnded another) {
      System.out.println("invoice " + number + " is stored"); // it is committed: read your own row
    } catch (OutboxException error) {
      System.err.println(error.getMessage());
      System.exit(1);
    }
  }

  private static void run(Connection connection, String sql) throws Exception {
    try (var statement = connection.createStatement()) {
      statement.execute(sql);
    }
  }
}
