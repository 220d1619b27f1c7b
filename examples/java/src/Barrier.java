import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import javax.sql.DataSource;

/** The barrier in PostgreSQL: of "committed" and "fenced", only one can ever be stored for a message. */
final class Barrier {
  private static final String CREATE =
      """
      CREATE TABLE IF NOT EXISTS outbox_barrier (
        producer_group text NOT NULL,
        message_id     text NOT NULL,
        outcome        text NOT NULL CHECK (outcome IN ('committed', 'fenced')),
        created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (producer_group, message_id)
      )""";
  private static final String RECORD =
      "INSERT INTO outbox_barrier (producer_group, message_id, outcome) VALUES (?, ?, 'committed')";
  private static final String FENCE =
      "INSERT INTO outbox_barrier (producer_group, message_id, outcome) VALUES (?, ?, 'fenced')"
          + " ON CONFLICT DO NOTHING";
  private static final String READ =
      "SELECT outcome FROM outbox_barrier WHERE producer_group = ? AND message_id = ?";

  private final DataSource database;
  private final String group;

  Barrier(DataSource database, String group) {
    this.database = database;
    this.group = group;
  }

  /** Creates the table where it does not exist. */
  void createTable() throws SQLException {
    try (Connection connection = database.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(CREATE);
    }
  }

  /** Inside the local transaction. A duplicate key means that the message is fenced: roll back. */
  void record(Connection local, String messageId) throws SQLException {
    update(local, RECORD, messageId);
  }

  /** Answers a check: forbids a commit from now on, then reports which of the two rows exists. */
  String decide(String messageId) throws SQLException {
    fence(messageId);
    try (Connection connection = database.getConnection();
        PreparedStatement read = prepared(connection, READ, messageId);
        ResultSet rows = read.executeQuery()) {
      rows.next();
      return rows.getString(1).equals("committed") ? "COMMIT" : "ROLLBACK";
    }
  }

  private void fence(String messageId) throws SQLException {
    try (Connection connection = database.getConnection();
        Statement settings = connection.createStatement()) {
      connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
      connection.setAutoCommit(false); // closing the connection without a commit rolls back
      settings.execute("SET LOCAL lock_timeout = '2s'");
      settings.execute("SET LOCAL synchronous_commit = on");
      update(connection, FENCE, messageId);
      connection.commit();
    }
  }

  private void update(Connection connection, String sql, String messageId) throws SQLException {
    try (PreparedStatement statement = prepared(connection, sql, messageId)) {
      statement.executeUpdate();
    }
  }

  private PreparedStatement prepared(Connection connection, String sql, String messageId)
      throws SQLException {
    PreparedStatement statement = connection.prepareStatement(sql);
    statement.setString(1, group);
    statement.setString(2, messageId);
    return statement;
  }
}
