package outbox.spring;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Instant;
import java.util.concurrent.atomic.AtomicReference;
import javax.sql.DataSource;
import org.springframework.dao.DataAccessResourceFailureException;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.transaction.support.TransactionCallback;
import org.springframework.transaction.support.TransactionOperations;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import outbox.client.Barrier;
import outbox.client.Decision;
import outbox.client.Message;
import outbox.client.OutboxException;
import outbox.client.PreparedMessage;
import outbox.client.TransactionProducer;

/** Runs a database transaction whose message is published if and only if it commits. */
public class OutboxTemplate {
  private final TransactionProducer producer;
  private final Barrier barrier;
  private final TransactionOperations transactions;
  private final DataSource database;
  private final int attempts;

  /** Takes the data source of the transactions; {@code attempts} as for the producer. */
  public OutboxTemplate(
      TransactionProducer producer,
      Barrier barrier,
      TransactionOperations transactions,
      DataSource database,
      int attempts) {
    this.producer = producer;
    this.barrier = barrier;
    this.transactions = transactions;
    this.database = database;
    this.attempts = attempts;
  }

  /**
   * Prepares the message, runs the callback in a transaction that also writes the barrier's row, and
   * ends the message: COMMIT after the commit, ROLLBACK after {@code tx.setRollbackOnly()}. After an
   * exception, and if the end does not arrive, a check decides the message.
   *
   * @return what the callback returned
   * @throws OutboxException if nothing was run, and nothing is stored
   * @throws OutboxException.AlreadyEnded if the message was decided before: read your own rows
   * @throws IllegalStateException inside another transaction, which would commit after the end
   */
  public <T> T execute(Message message, TransactionCallback<T> callback) {
    if (TransactionSynchronizationManager.isActualTransactionActive()) {
      throw new IllegalStateException("execute begins its own transaction: call it outside of one");
    }
    var returned = new AtomicReference<T>();
    producer.sendInTransaction(
        message,
        attempts,
        0,
        prepared ->
            transactions.execute(
                    tx -> {
                      record(prepared);
                      returned.set(callback.doInTransaction(tx));
                      return tx.isRollbackOnly();
                    })
                ? decisionOf(prepared)
                : Decision.COMMIT);
    return returned.get();
  }

  private void record(PreparedMessage prepared) {
    Connection connection = DataSourceUtils.getConnection(database);
    try {
      barrier.record(connection, prepared.messageId());
    } catch (SQLException error) {
      throw new DataAccessResourceFailureException("the barrier's row was not written", error);
    } finally {
      DataSourceUtils.releaseConnection(connection, database);
    }
  }

  /** Another attempt with the same id may still commit: the barrier knows it, or prevents it. */
  private Decision decisionOf(PreparedMessage prepared) {
    Instant preparedAt = Instant.parse(prepared.preparedAt());
    try {
      return barrier.decide(prepared.messageId(), preparedAt).decision();
    } catch (SQLException error) {
      return Decision.UNKNOWN;
    }
  }
}
