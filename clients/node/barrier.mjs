import { FencedError } from "./errors.mjs";

const DAY_MS = 86_400_000;
const KEEP_DAYS = 7;
const CLOCK_MARGIN_MS = 3_600_000;

/** The statements are those of docs/barrier.md; `dialect` is what a database has of its own. */
const statements = ({ text, time, now, at, first, second, otherwise }) => ({
  create: `CREATE TABLE IF NOT EXISTS outbox_barrier (
    producer_group ${text} NOT NULL,
    message_id     ${text} NOT NULL,
    outcome        ${text} NOT NULL CHECK (outcome IN ('committed', 'fenced')),
    created_at     ${time} NOT NULL DEFAULT ${now},
    PRIMARY KEY (producer_group, message_id))`,
  record: `INSERT INTO outbox_barrier (producer_group, message_id, outcome, created_at)
    VALUES (${first}, ${second}, 'committed', ${now})`,
  fence: `INSERT INTO outbox_barrier (producer_group, message_id, outcome)
    VALUES (${first}, ${second}, 'fenced') ${otherwise}`,
  read: `SELECT outcome FROM outbox_barrier WHERE producer_group = ${first} AND message_id = ${second}`,
  isPurged: `SELECT 1 FROM outbox_barrier WHERE ${MARK} AND created_at > ${at}`,
  firstMark: `INSERT INTO outbox_barrier (producer_group, message_id, outcome, created_at)
    VALUES ('', 'purged-before', 'fenced', ${at}) ${otherwise}`,
  laterMark: `UPDATE outbox_barrier SET created_at = greatest(created_at, ${at}) WHERE ${MARK}`,
  purge: `DELETE FROM outbox_barrier WHERE producer_group <> '' AND created_at < ${at}`,
});
const MARK = "producer_group = '' AND message_id = 'purged-before'";

/** PostgreSQL, by a `Pool` of the package `pg`. */
export const postgresql = (pool) => ({
  sql: statements({
    text: "text", time: "timestamptz", now: "clock_timestamp()", at: "to_timestamp($1)", first: "$1", second: "$2",
    otherwise: "ON CONFLICT DO NOTHING",
  }),
  begin: ["BEGIN ISOLATION LEVEL READ COMMITTED"],
  limit: [
    "SET LOCAL lock_timeout = '2s'",
    `SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'`,
  ],
  reset: [],
  connect: () => pool.connect(),
  close: (client, error) => client.release(error),
  query: async (client, text, values) => {
    const { rows, rowCount } = await (client ?? pool).query(text, values);
    return { rows, count: rowCount };
  },
  isDuplicate: (error) => error.code === "23505",
});

/** MySQL and MariaDB, by a pool of `mysql2/promise`. */
export const mysql = (pool) => ({
  sql: statements({
    text: "varchar(128) CHARACTER SET ascii COLLATE ascii_bin", time: "timestamp", now: "CURRENT_TIMESTAMP",
    at: "FROM_UNIXTIME(?)", first: "?", second: "?", otherwise: "ON DUPLICATE KEY UPDATE outcome = outcome",
  }),
  begin: ["SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION"],
  limit: ["SET SESSION innodb_lock_wait_timeout = 2"],
  reset: ["SET SESSION innodb_lock_wait_timeout = DEFAULT"],
  connect: () => pool.getConnection(),
  close: (client, error) => (error ? client.destroy() : client.release()),
  query: async (client, text, values) => {
    const [rows] = await (client ?? pool).query(text, values);
    return { rows, count: rows.affectedRows };
  },
  isDuplicate: (error) => error.errno === 1062,
});

/**
 * Makes "no row" an answer: of "committed" and "fenced", only one can ever be stored for a message. `database` is
 * `postgresql(pool)` or `mysql(pool)`: the primary of the database that has your own rows.
 */
export class Barrier {
  #database;
  #group;

  constructor(database, group) {
    this.#database = database;
    this.#group = group;
  }

  /** Create the table if it is missing. */
  async createTable() {
    await this.#database.query(null, this.#database.sql.create);
  }

  /** Run `work(client)` and store the row of the barrier, in one transaction; an error rolls both back. */
  run(prepared, work) {
    return this.#transaction(async (client) => {
      const result = await work(client);
      await this.record(client, prepared.messageId);
      return result;
    });
  }

  /** Store "committed" in a local transaction of your own. After any error roll back. */
  async record(client, messageId) {
    const { query, sql, isDuplicate } = this.#database;
    try {
      await query(client, sql.record, [this.#group, messageId]);
    } catch (error) {
      throw isDuplicate(error) ? new FencedError(messageId, error) : error;
    }
  }

  /**
   * Forbid a commit from now on, then report which of the two rows is stored: resolve to a decision. It waits at most
   * two seconds for an open local transaction; then it throws, which an endpoint answers with UNKNOWN.
   */
  async check({ messageId, preparedAt }) {
    const { query, sql, limit, reset } = this.#database;
    const ids = [this.#group, messageId];
    await this.#transaction(async (client) => {
      for (const statement of limit) await query(client, statement);
      await query(client, sql.fence, ids);
      for (const statement of reset) await query(client, statement);
    });
    const { rows } = await query(null, sql.read, ids);
    if (rows[0].outcome === "committed") return "COMMIT";
    const purged = await query(null, sql.isPurged, [(preparedAt.getTime() - CLOCK_MARGIN_MS) / 1000]);
    return purged.rows.length > 0 ? "UNKNOWN" : "ROLLBACK";
  }

  /**
   * Delete rows older than `days`, at least 7; resolve to how many. It stores up to which time first, so that a check of
   * an older message is answered UNKNOWN.
   */
  async purge(days) {
    if (!(days >= KEEP_DAYS)) throw new RangeError("rows are kept at least 7 days");
    const { query, sql } = this.#database;
    const horizon = [(Date.now() - days * DAY_MS) / 1000];
    await query(null, sql.firstMark, horizon);
    await query(null, sql.laterMark, horizon);
    return (await query(null, sql.purge, horizon)).count;
  }

  async #transaction(work) {
    const { connect, close, query, begin } = this.#database;
    const client = await connect();
    try {
      for (const statement of begin) await query(client, statement);
      const result = await work(client);
      await query(client, "COMMIT");
      close(client);
      return result;
    } catch (error) {
      close(client, error); // closes the connection, which rolls back
      throw error;
    }
  }
}
