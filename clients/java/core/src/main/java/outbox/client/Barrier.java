package outbox.client;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.Set;
import javax.sql.DataSource;

/**
 * One row that makes a late local commit fail once a check was answered ROLLBACK: of {@code committed}
 * and {@code fenced}, only one can ever be stored for a message. For PostgreSQL, MariaDB and MySQL;
 * another database is refused.
 */
public final class Barrier {
  private static final Duration PURGE_AT_LEAST = Duration.ofDays(7);
  private static final Duration CLOCK_MARGIN = Duration.ofHours(1);
  /** PostgreSQL's answers where another process creates the same table at the same time. */
  private static final Set<String> CREATED_MEANWHILE = Set.of("23505", "42P07");

  private static final String RECORD =
      "INSERT INTO outbox_barrier (producer_group, message_id, outcome) VALUES (?, ?, 'committed')";
  private static final String FENCE =
      "INSERT INTO outbox_barrier (producer_group, message_id, outcome) VALUES (?, ?, 'fenced') ";
  private static final String READ =
      """
      SELECT outcome, (SELECT %s FROM outbox_barrier
      WHERE producer_group = '' AND message_id = 'purged-before')
      FROM outbox_barrier WHERE producer_group = ? AND message_id = ?""";
  private static final String PURGE =
      """
      DELETE FROM outbox_barrier WHERE producer_group <> '' AND created_at < (
      SELECT created_at FROM (SELECT created_at FROM outbox_barrier
      WHERE producer_group = '' AND message_id = 'purged-before') mark)""";

  private final String group;
  private final DataSource database;

  /** Takes the primary of the database that has the rows of the local transactions. */
  public Barrier(String producerGroup, DataSource database) {
    this.group = producerGroup;
    this.database = database;
  }

  /** Creates the table where it does not exist. */
  public void createTable() throws SQLException {
    try (Connection connection = database.getConnection();
        Statement statement = connection.createStatement()) {
      connection.setAutoCommit(true);
      statement.execute(Dialect.of(connection).createTable());
    } catch (SQLException error) {
      if (!CREATED_MEANWHILE.contains(error.getSQLState())) {
        throw error;
      }
    }
  }

  /**
   * Inserts the row inside the local transaction.
   *
   * @throws OutboxException.Fenced if there is one: let it roll back the local transaction
   * @throws IllegalStateException outside a transaction
   */
  public void record(Connection local, String messageId) throws SQLException {
    if (local.getAutoCommit()) {
      throw new IllegalStateException("the barrier's row belongs into a transaction");
    }
    Dialect.of(local);
    try {
      insert(local, RECORD, messageId);
    } catch (SQLException error) {
      if (Dialect.isDuplicate(error)) {
        throw new OutboxException.Fenced(messageId, error);
      }
      throw error;
    }
  }

  /**
   * Answers a check: forbids a commit from now on, then reads which of the two rows exists. UNKNOWN
   * while a local transaction is open, and if a purge may have deleted the row.
   */
  public Verdict check(Check check) throws SQLException {
    return decide(check.messageId(), check.preparedAt());
  }

  /** Answers like {@code check}, about a message that was prepared at this time. */
  public Verdict decide(String messageId, Instant preparedAt) throws SQLException {
    try (Connection connection = database.getConnection()) {
      Dialect dialect = Dialect.of(connection);
      if (!fence(connection, dialect, messageId)) {
        return Verdict.unknown("the local transaction is open");
      }
      try (PreparedStatement read = connection.prepareStatement(READ.formatted(dialect.seconds))) {
        read.setString(1, group);
        read.setString(2, messageId);
        try (ResultSet rows = read.executeQuery()) {
          rows.next();
          return verdict(rows.getString(1), preparedAt, rows.getObject(2, Long.class));
        }
      }
    }
  }

  /** Returns false if an open local transaction has the row. */
  private boolean fence(Connection connection, Dialect dialect, String messageId)
      throws SQLException {
    connection.setAutoCommit(false);
    try (Statement settings = connection.createStatement()) {
      settings.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
      settings.execute(dialect.limit);
      insert(connection, FENCE + dialect.unlessThere, messageId);
      connection.commit();
      return true;
    } catch (SQLException error) {
      connection.rollback();
      if (Dialect.isBusy(error)) {
        return false;
      }
      throw error;
    } finally {
      dialect.removeLimit(connection);
      connection.setAutoCommit(true);
    }
  }

  /** The two times come from two databases, whose clocks may differ by an hour. */
  private static Verdict verdict(String outcome, Instant preparedAt, Long purgedBefore) {
    if (outcome.equals("committed")) {
      return Verdict.COMMIT;
    }
    long prepared = preparedAt.minus(CLOCK_MARGIN).getEpochSecond();
    return purgedBefore != null && prepared <= purgedBefore
        ? Verdict.unknown("a purge may have deleted the row")
        : Verdict.ROLLBACK;
  }

  /**
   * Deletes the rows of all groups that are older, and returns how many. Keep them as long as a check
   * may come: longer than the group's {@code max_age_seconds}, and as long as messages are parked.
   *
   * @throws IllegalArgumentException below 7 days
   */
  public int purge(Duration olderThan) throws SQLException {
    if (olderThan.compareTo(PURGE_AT_LEAST) < 0) {
      throw new IllegalArgumentException("rows are kept at least 7 days");
    }
    try (Connection connection = database.getConnection();
        PreparedStatement mark = connection.prepareStatement(Dialect.of(connection).mark);
        Statement purge = connection.createStatement()) {
      connection.setAutoCommit(true);
      mark.setLong(1, olderThan.toSeconds());
      mark.executeUpdate(); // of its own: without the deletion it only makes answers more careful
      return purge.executeUpdate(PURGE);
    }
  }

  private void insert(Connection connection, String sql, String messageId) throws SQLException {
    try (PreparedStatement insert = connection.prepareStatement(sql)) {
      insert.setString(1, group);
      insert.setString(2, messageId);
      insert.executeUpdate();
    }
  }
}
