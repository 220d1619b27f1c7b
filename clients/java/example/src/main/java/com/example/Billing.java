package com.example;

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.sql.Connection;
import java.util.Map;
import java.util.concurrent.Executors;
import org.postgresql.ds.PGSimpleDataSource;
import outbox.client.Barrier;
import outbox.client.CheckEndpoint;
import outbox.client.Message;
import outbox.client.OutboxException;
import outbox.client.TransactionProducer;

/** Issues invoices ("issue NUMBER [forget]"), and answers the checks of their messages ("serve"). */
public final class Billing {
  public static void main(String[] arguments) throws Exception {
    Map<String, String> env = System.getenv();
    var group = env.getOrDefault("PRODUCER_GROUP", "billing");
    var database = new PGSimpleDataSource(); // a service takes a pool
    database.setUrl(env.get("JDBC_URL"));
    var barrier = new Barrier(group, database);
    barrier.createTable();
    if (arguments[0].equals("serve")) {
      int port = Integer.parseInt(env.getOrDefault("PORT", "9000"));
      var server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
      server.setExecutor(Executors.newCachedThreadPool());
      server.createContext("/", new CheckEndpoint(group, env.get("CHECK_SECRET"), barrier::check));
      server.start();
      return;
    }
    long number = Long.parseLong(arguments[1]);
    var message = Message.of("invoices.issued", "{\"invoice\":" + number + "}").key("cust-58");
    var outbox = new TransactionProducer(env.get("OUTBOX_API_URL"), group, env.get("OUTBOX_API_KEY"));
    try (var connection = database.getConnection()) {
      run(connection, "CREATE TABLE IF NOT EXISTS invoice (number bigint PRIMARY KEY)");
      connection.setAutoCommit(false); // closing the connection without a commit rolls back
      outbox.send(message.transactionId("invoice-" + number), messageId -> {
        run(connection, "INSERT INTO invoice VALUES (" + number + ")");
        barrier.record(connection, messageId);
        connection.commit();
        if (arguments.length > 2) {
          System.exit(0); // "forget": as if the process had died here
        }
      });
    } catch (OutboxException error) {
      if (error.reason() != OutboxException.Reason.COMMITTED) { // an earlier call has stored it
        throw error;
      }
    }
    System.out.println("invoice " + number + " is stored");
  }

  private static void run(Connection connection, String sql) throws Exception {
    try (var statement = connection.createStatement()) {
      statement.execute(sql);
    }
  }
}
