import java.net.URI;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Map;
import javax.sql.DataSource;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * A service in Java that issues invoices, and announces each in Kafka if and only if it is stored.
 *
 * <pre>
 * java Billing issue NUMBER [forget]    prepare, local transaction, end; "forget" stops before the end
 * java Billing serve                    answers checks at PORT
 * java Billing verify SECRET ID TIMESTAMP SIGNATURES NOW  &lt; body      exit 0 or 1
 * </pre>
 *
 * Environment: OUTBOX_API_URL, OUTBOX_API_KEY (where keys are needed), DATABASE_URL,
 * CHECK_SECRET, PORT, PRODUCER_GROUP.
 */
public final class Billing {
  private static final Map<String, String> ENV = System.getenv();
  private static final String GROUP = ENV.getOrDefault("PRODUCER_GROUP", "billing");

  private final DataSource database;
  private final Barrier barrier;

  private Billing(DataSource database) throws SQLException {
    this.database = database;
    this.barrier = new Barrier(database, GROUP);
    barrier.createTable();
    try (Connection connection = database.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("CREATE TABLE IF NOT EXISTS invoice (number bigint PRIMARY KEY)");
    }
  }

  private void issue(long number, boolean forget) throws Exception {
    Map<String, String> message =
        Map.of(
            "producer_group", GROUP,
            "topic", "invoices.issued",
            "key", "cust-58",
            "value", "{\"invoice\":" + number + "}",
            "transaction_id", "invoice-" + number);
    Outbox outbox = new Outbox(needed("OUTBOX_API_URL"), ENV.get("OUTBOX_API_KEY"));
    Outbox.LocalTransaction local =
        messageId -> {
          store(number, messageId);
          if (forget) {
            System.exit(0); // as if the process had died here
          }
        };
    try {
      System.out.println(outbox.send(message, local));
    } catch (Outbox.CommittedException another) {
      show(number);
    }
  }

  /** Prints the row of an invoice that another call has issued. */
  private void show(long number) throws SQLException {
    try (Connection connection = database.getConnection();
        PreparedStatement read =
            connection.prepareStatement("SELECT number FROM invoice WHERE number = ?")) {
      read.setLong(1, number);
      try (ResultSet rows = read.executeQuery()) {
        rows.next();
        System.out.printf("invoice %d is stored%n", rows.getLong(1));
      }
    }
  }

  /** The local transaction: the invoice and the barrier's row, or neither. */
  private void store(long number, String messageId) throws SQLException {
    try (Connection connection = database.getConnection();
        PreparedStatement insert = connection.prepareStatement("INSERT INTO invoice VALUES (?)")) {
      connection.setAutoCommit(false); // closing the connection without a commit rolls back
      insert.setLong(1, number);
      insert.executeUpdate();
      barrier.record(connection, messageId);
      connection.commit();
    }
  }

  /** Returns a source of connections. A service takes a pool here. */
  private static DataSource open(String url) {
    URI place = URI.create(url);
    String[] login = place.getUserInfo().split(":", 2);
    PGSimpleDataSource source = new PGSimpleDataSource();
    source.setServerNames(new String[] {place.getHost()});
    source.setPortNumbers(new int[] {place.getPort() < 0 ? 5432 : place.getPort()});
    source.setDatabaseName(place.getPath().substring(1));
    source.setUser(login[0]);
    source.setPassword(login.length > 1 ? login[1] : null);
    return source;
  }

  /** Returns an environment variable; throws if it is missing. */
  private static String needed(String name) {
    String value = ENV.getOrDefault(name, "");
    if (value.isEmpty()) {
      throw new IllegalStateException(name + " is not set in this terminal");
    }
    return value;
  }

  private static int verify(String[] arguments) throws Exception {
    byte[] body = System.in.readAllBytes();
    Signature signature = new Signature(arguments[1]);
    long now = Long.parseLong(arguments[5]);
    return signature.fits(arguments[2], arguments[3], arguments[4], body, now) ? 0 : 1;
  }

  /** Runs one of the subcommands above. */
  public static void main(String[] arguments) {
    try {
      run(arguments);
    } catch (Exception error) {
      System.err.println(error.getMessage());
      System.exit(1);
    }
  }

  private static void run(String[] arguments) throws Exception {
    String word = arguments.length == 0 ? "" : arguments[0];
    if (word.equals("issue") && arguments.length >= 2) {
      boolean forget = arguments.length > 2 && arguments[2].equals("forget");
      new Billing(open(needed("DATABASE_URL"))).issue(Long.parseLong(arguments[1]), forget);
    } else if (word.equals("serve") && arguments.length == 1) {
      Signature signature = new Signature(needed("CHECK_SECRET"));
      Barrier barrier = new Billing(open(needed("DATABASE_URL"))).barrier;
      int port = Integer.parseInt(ENV.getOrDefault("PORT", "9000"));
      new CheckEndpoint(GROUP, signature, barrier::decide).serve(port);
      System.err.printf("answering checks of the group %s at http://127.0.0.1:%d%n", GROUP, port);
    } else if (word.equals("verify") && arguments.length == 6) {
      System.exit(verify(arguments));
    } else {
      System.err.println(
          "usage: Billing issue NUMBER [forget] | serve | verify SECRET ID TIMESTAMP SIGNATURES NOW");
      System.exit(2);
    }
  }
}
