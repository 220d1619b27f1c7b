package outbox.spring;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicReference;
import javax.sql.DataSource;
import org.springframework.dao.DataAccessResourceFailureException;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.transaction.support.TransactionCallback;
import org.springframework.transaction.support.TransactionOperations;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import outbox.client.Barrier;
import outbox.client.Message;
import outbox.client.OutboxException;
import outbox.client.TransactionProducer;

/** Runs a database transaction whose message is published if and only if it commits. */
public class OutboxTemplate {
  private static final System.Logger LOG = System.getLogger("outbox.spring");

  /** The callback wanted a rollback: the message gets no end. */
  private static final class RolledBack extends Exception {
    private static final long serialVersionUID = 1;
  }

  private final TransactionProducer producer;
  private final Barrier barrier;
  private final TransactionOperations transactions;
  private final DataSource database;

  /** Takes the data source of the transactions. */
  public OutboxTemplate(
      TransactionProducer producer,
      Barrier barrier,
      TransactionOperations transactions,
      DataSource database) {
    this.producer = producer;
    this.barrier = barrier;
    this.transactions = transactions;
    this.database = database;
  }

  /**
   * Prepares the message, runs the callback in a transaction that also writes the barrier's row, and
   * ends the message after the commit. After an exception, after {@code tx.setRollbackOnly()}, and if
   * the end does not arrive, a check decides the message.
   *
   * @return what the callback returned
   * @throws OutboxException if nothing was run, and nothing is stored; COMMITTED: read your own rows
   * @throws IllegalStateException inside another transaction, which would commit after the end
   */
  public <T> T execute(Message message, TransactionCallback<T> callback) {
    if (TransactionSynchronizationManager.isActualTransactionActive()) {
      throw new IllegalStateException("execute begins its own transaction: call it outside of one");
    }
    var returned = new AtomicReference<T>();
    try {
      producer.send(message, messageId -> run(messageId, callback, returned));
    } catch (OutboxException error) {
      if (error.reason() != OutboxException.Reason.NOT_ENDED) {
        throw error;
      }
      LOG.log(System.Logger.Level.WARNING, "a check decides the message", error);
    } catch (RolledBack asWanted) {
      LOG.log(System.Logger.Level.DEBUG, "a check rolls the message back");
    }
    return returned.get();
  }

  private <T> void run(
      String messageId, TransactionCallback<T> callback, AtomicReference<T> returned)
      throws RolledBack {
    boolean isRolledBack =
        transactions.execute(
            tx -> {
              record(messageId);
              returned.set(callback.doInTransaction(tx));
              return tx.isRollbackOnly();
            });
    if (isRolledBack) {
      throw new RolledBack();
    }
  }

  private void record(String messageId) {
    Connection connection = DataSourceUtils.getConnection(database);
    try {
      barrier.record(connection, messageId);
    } catch (SQLException error) {
      throw new DataAccessResourceFailureException("the barrier's row was not written", error);
    } finally {
      DataSourceUtils.releaseConnection(connection, database);
    }
  }
}
