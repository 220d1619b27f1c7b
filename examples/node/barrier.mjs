/** The barrier in PostgreSQL: of "committed" and "fenced", only one can ever be stored for a message. */

const CREATE = `CREATE TABLE IF NOT EXISTS outbox_barrier (
  producer_group text NOT NULL,
  message_id     text NOT NULL,
  outcome        text NOT NULL CHECK (outcome IN ('committed', 'fenced')),
  created_at     timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (producer_group, message_id)
)`;
const RECORD = "INSERT INTO outbox_barrier (producer_group, message_id, outcome) VALUES ($1, $2, 'committed')";
const FENCE = `INSERT INTO outbox_barrier (producer_group, message_id, outcome) VALUES ($1, $2, 'fenced')
ON CONFLICT DO NOTHING`;
const READ = "SELECT outcome FROM outbox_barrier WHERE producer_group = $1 AND message_id = $2";

/** Run `work(client)` in one transaction; an error of it rolls back. */
export async function transaction(pool, work) {
  const client = await pool.connect();
  try {
    await client.query("BEGIN ISOLATION LEVEL READ COMMITTED");
    const result = await work(client);
    await client.query("COMMIT");
    client.release();
    return result;
  } catch (error) {
    client.release(error); // closes the connection, which rolls back
    throw error;
  }
}

/** Create the table where it does not exist. */
export const createTable = (pool) => pool.query(CREATE);

/** Inside the local transaction. A duplicate key means that the message is fenced: roll back. */
export const record = (client, group, messageId) => client.query(RECORD, [group, messageId]);

/** In a check: forbid a commit from now on, then report which of the two rows exists. */
export async function decide(pool, group, messageId) {
  await transaction(pool, async (client) => {
    await client.query("SET LOCAL lock_timeout = '2s'");
    await client.query("SET LOCAL synchronous_commit = on");
    await client.query(FENCE, [group, messageId]);
  });
  const { rows } = await pool.query(READ, [group, messageId]);
  return rows[0].outcome === "committed" ? "COMMIT" : "ROLLBACK";
}
