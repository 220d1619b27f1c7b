package outbox.client;

import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.Scanner;
import javax.sql.DataSource;

/**
 * One row that makes a late local commit fail once a check was answered ROLLBACK: of {@code committed}
 * and {@code fenced}, only one can ever be stored for a message. For PostgreSQL, MariaDB and MySQL.
 */
public final class Barrier {
  private static final Duration KEPT_AT_LEAST = Duration.ofDays(7);
  private static final int FENCE_SECONDS = 2; // less than the check_timeout_seconds of a group
  private static final int CLOCK_MARGIN_SECONDS = 3600; // between the databases

  private static final String INSERT = "INSERT INTO outbox_barrier (producer_group, message_id, outcome";
  private static final String MARK = " WHERE producer_group = '' AND message_id = 'purged-before'";
  private static final String DURABLY = "FROM set_config('synchronous_commit', 'on', true)";

  private final String group;
  private final DataSource database;

  /** Takes the primary of the database that has the rows of the local transactions. */
  public Barrier(String producerGroup, DataSource database) {
    this.group = producerGroup;
    this.database = database;
  }

  /** Creates the table where it does not exist: by the file that Flyway can run as well. */
  public void createTable() throws SQLException {
    try (Connection connection = connect()) {
      String name = isPostgresql(connection) ? "postgresql" : "mysql";
      var file = Barrier.class.getResourceAsStream("/outbox/barrier/" + name + "/R__outbox_barrier.sql");
      try (var statement = new Scanner(file, StandardCharsets.UTF_8).useDelimiter("\\A")) {
        execute(connection, 0, statement.next());
      }
    }
  }

  /**
   * Inserts the row inside the local transaction.
   *
   * @throws OutboxException FENCED if there is one: let it roll back the local transaction
   * @throws IllegalStateException outside a transaction
   */
  public void record(Connection local, String messageId) throws SQLException {
    if (local.getAutoCommit()) {
      throw new IllegalStateException("the barrier's row belongs into a transaction");
    }
    try {
      execute(local, 0, INSERT + ") VALUES (?, ?, 'committed')", group, messageId);
    } catch (SQLException error) {
      if ("23505".equals(error.getSQLState()) || error.getErrorCode() == 1062) {
        String message = "message " + messageId + " already has a barrier row: roll back";
        throw new OutboxException(OutboxException.Reason.FENCED, message, error);
      }
      throw error;
    }
  }

  /**
   * Answers a check: forbids a commit from now on, then reads which of the two rows exists. UNKNOWN
   * if a purge may have deleted the row; it throws if a local transaction is open for two seconds.
   */
  public Decision check(CheckEndpoint.Check check) throws SQLException {
    String fence = INSERT + ") SELECT ?, ?, 'fenced' " + DURABLY + " ON CONFLICT DO NOTHING";
    String mark = "(SELECT 1 FROM outbox_barrier" + MARK + " AND created_at > to_timestamp(?))";
    String look = "SELECT outcome, EXISTS " + mark
        + " FROM outbox_barrier WHERE producer_group = ? AND message_id = ?";
    long prepared = check.preparedAt().getEpochSecond() - CLOCK_MARGIN_SECONDS;
    try (Connection connection = connect()) {
      execute(connection, FENCE_SECONDS, fence, group, check.messageId());
      try (var statement = prepared(connection, look, prepared, group, check.messageId());
          ResultSet rows = statement.executeQuery()) {
        rows.next();
        Decision absent = rows.getBoolean(2) ? Decision.UNKNOWN : Decision.ROLLBACK;
        return rows.getString(1).equals("committed") ? Decision.COMMIT : absent;
      }
    }
  }

  /**
   * Deletes the rows of all groups that are older, and returns how many. It stores up to which time
   * first, so that a check of an older message is answered UNKNOWN. Keep them as long as a check may
   * come: longer than the group's {@code max_age_seconds}, and as long as messages are parked.
   *
   * @throws IllegalArgumentException below 7 days
   */
  public int purge(Duration olderThan) throws SQLException {
    if (olderThan.compareTo(KEPT_AT_LEAST) < 0) {
      throw new IllegalArgumentException("rows are kept at least 7 days");
    }
    String mark = INSERT + ", created_at) VALUES ('', 'purged-before', 'fenced', to_timestamp(?))";
    String later = "UPDATE outbox_barrier SET created_at = greatest(created_at, to_timestamp(?))" + MARK;
    String older = " WHERE producer_group <> '' AND created_at < to_timestamp(?)";
    long horizon = Instant.now().minus(olderThan).getEpochSecond();
    try (Connection connection = connect()) {
      execute(connection, 0, mark + " ON CONFLICT DO NOTHING", horizon);
      execute(connection, 0, later, horizon);
      return execute(connection, 0, "DELETE FROM outbox_barrier" + older, horizon);
    }
  }

  private Connection connect() throws SQLException {
    Connection connection = database.getConnection();
    connection.setAutoCommit(true);
    return connection;
  }

  private static int execute(Connection connection, int seconds, String sql, Object... values)
      throws SQLException {
    try (PreparedStatement statement = prepared(connection, sql, values)) {
      statement.setQueryTimeout(seconds);
      return statement.executeUpdate();
    }
  }

  /** Takes the SQL of PostgreSQL. */
  private static PreparedStatement prepared(Connection connection, String sql, Object... values)
      throws SQLException {
    String own = isPostgresql(connection) ? sql : sql.replace(DURABLY, "")
        .replace("ON CONFLICT DO NOTHING", "ON DUPLICATE KEY UPDATE outcome = outcome")
        .replace("to_timestamp(", "FROM_UNIXTIME(");
    PreparedStatement statement = connection.prepareStatement(own);
    for (int place = 0; place < values.length; place++) {
      statement.setObject(place + 1, values[place]);
    }
    return statement;
  }

  private static boolean isPostgresql(Connection connection) throws SQLException {
    return connection.getMetaData().getDatabaseProductName().equals("PostgreSQL");
  }
}
