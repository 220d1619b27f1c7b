package outbox.client;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Locale;
import java.util.Set;

/** What the barrier says differently to each database. */
enum Dialect {
  POSTGRESQL(
      "SET LOCAL lock_timeout = '2s'; SET LOCAL synchronous_commit = on",
      "ON CONFLICT DO NOTHING",
      "CAST(floor(extract(epoch FROM created_at)) AS bigint)",
      """
      INSERT INTO outbox_barrier VALUES
      ('', 'purged-before', 'fenced', clock_timestamp() - ? * interval '1 second')
      ON CONFLICT (producer_group, message_id) DO UPDATE
      SET created_at = greatest(outbox_barrier.created_at, excluded.created_at)"""),
  MYSQL(
      "SET SESSION innodb_lock_wait_timeout = 2",
      "ON DUPLICATE KEY UPDATE outcome = outcome",
      "unix_timestamp(created_at)",
      """
      INSERT INTO outbox_barrier VALUES
      ('', 'purged-before', 'fenced', current_timestamp - INTERVAL ? SECOND)
      ON DUPLICATE KEY UPDATE created_at = greatest(created_at, VALUES(created_at))""");

  private static final Set<Integer> MYSQL_BUSY = Set.of(1205, 1213);

  /** Limits the wait for an open local transaction to less than the time for an answer. */
  final String limit;

  final String unlessThere;
  final String seconds;
  final String mark;

  Dialect(String limit, String unlessThere, String seconds, String mark) {
    this.limit = limit;
    this.unlessThere = unlessThere;
    this.seconds = seconds;
    this.mark = mark;
  }

  /** Returns that of a connection; throws UnsupportedOperationException for an untested database. */
  static Dialect of(Connection connection) throws SQLException {
    String product = connection.getMetaData().getDatabaseProductName();
    return switch (product) {
      case "PostgreSQL" -> POSTGRESQL;
      case "MySQL", "MariaDB" -> MYSQL;
      default -> throw new UnsupportedOperationException("the barrier is not tested on " + product);
    };
  }

  /** Returns the statement of the file that Flyway runs as well. */
  String createTable() {
    String name = name().toLowerCase(Locale.ROOT);
    String file = "/outbox/barrier/" + name + "/R__outbox_barrier.sql";
    try (InputStream statement = Dialect.class.getResourceAsStream(file)) {
      return new String(statement.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException unreadable) {
      throw new IllegalStateException(unreadable);
    }
  }

  /** Ends a limit of the session: a pool lends the connection to others. */
  void removeLimit(Connection connection) throws SQLException {
    if (this == MYSQL) {
      try (Statement statement = connection.createStatement()) {
        statement.execute("SET SESSION innodb_lock_wait_timeout = DEFAULT");
      }
    }
  }

  static boolean isDuplicate(SQLException error) {
    return "23505".equals(error.getSQLState()) || error.getErrorCode() == 1062;
  }

  static boolean isBusy(SQLException error) {
    return "55P03".equals(error.getSQLState()) || MYSQL_BUSY.contains(error.getErrorCode());
  }
}
