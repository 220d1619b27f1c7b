import { OutboxError } from "./error.mjs";

/** The statements are those of docs/barrier.md; `dialect` is what a database has of its own. */
const statements = ({ text, created, first, second, third, time, limits, orNothing }) => ({
  create: `CREATE TABLE IF NOT EXISTS outbox_barrier (
    producer_group ${text} NOT NULL,
    message_id     ${text} NOT NULL,
    outcome        ${text} NOT NULL CHECK (outcome IN ('committed', 'fenced')),
    created_at     ${created},
    PRIMARY KEY (producer_group, message_id))`,
  record: `INSERT INTO outbox_barrier (producer_group, message_id, outcome)
    VALUES (${first}, ${second}, 'committed')`,
  fence: `INSERT INTO outbox_barrier (producer_group, message_id, outcome)
    SELECT ${first}, ${second}, 'fenced' ${limits} ${orNothing}`,
  look: `SELECT outcome, EXISTS (SELECT 1 FROM outbox_barrier WHERE ${IS_MARK} AND created_at > ${time}) AS purged
    FROM outbox_barrier WHERE producer_group = ${second} AND message_id = ${third}`,
  mark: `INSERT INTO outbox_barrier (producer_group, message_id, outcome, created_at)
    VALUES ('', 'purged-before', 'fenced', ${time}) ${orNothing}`,
  remark: `UPDATE outbox_barrier SET created_at = greatest(created_at, ${time}) WHERE ${IS_MARK}`,
  purge: `DELETE FROM outbox_barrier WHERE producer_group <> '' AND created_at < ${time}`,
});
const IS_MARK = "producer_group = '' AND message_id = 'purged-before'";

/** PostgreSQL, by a `Pool` of the package `pg`. */
export const postgresql = (pool) => ({
  sql: statements({
    text: "text",
    created: "timestamptz NOT NULL DEFAULT clock_timestamp()",
    first: "$1",
    second: "$2",
    third: "$3",
    time: "to_timestamp($1)",
    limits: "FROM set_config('lock_timeout', '2s', true) a, set_config('synchronous_commit', 'on', true) b",
    orNothing: "ON CONFLICT DO NOTHING",
  }),
  duplicate: "23505",
  connect: () => pool.connect(),
  release: (client, error) => client.release(error),
  query: async (text, values, { client = pool } = {}) => {
    const { rows, rowCount } = await client.query(text, values);
    return { rows, count: rowCount };
  },
});

/** MySQL and MariaDB, by a pool of `mysql2/promise`. */
export const mysql = (pool) => ({
  sql: statements({
    text: "varchar(128) CHARACTER SET ascii COLLATE ascii_bin",
    created: "timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP",
    first: "?",
    second: "?",
    third: "?",
    time: "FROM_UNIXTIME(?)",
    limits: "",
    orNothing: "ON DUPLICATE KEY UPDATE outcome = outcome",
  }),
  duplicate: "ER_DUP_ENTRY",
  connect: () => pool.getConnection(),
  release: (client, error) => (error ? client.destroy() : client.release()),
  query: async (sql, values, { client = pool, timeout } = {}) => {
    const [rows] = await client.query({ sql, values, timeout });
    return { rows, count: rows.affectedRows };
  },
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
    await this.#database.query(this.#database.sql.create);
  }

  /** Run `work(client)` and store the row of the barrier, in one transaction; an error rolls both back. */
  async run(messageId, work) {
    const client = await this.#database.connect();
    try {
      await client.query("BEGIN");
      const result = await work(client);
      await this.record(client, messageId);
      await client.query("COMMIT");
      this.#database.release(client);
      return result;
    } catch (error) {
      this.#database.release(client, error); // closes the connection, which rolls back
      throw error;
    }
  }

  /** Store "committed" in a local transaction of your own. After any error roll back. */
  async record(client, messageId) {
    const { query, sql, duplicate } = this.#database;
    try {
      await query(sql.record, [this.#group, messageId], { client });
    } catch (error) {
      if (error.code !== duplicate) throw error;
      throw new OutboxError("fenced", `the barrier has a row for message ${messageId}: roll back`, error);
    }
  }

  /**
   * Forbid a commit from now on, then report which of the two rows is stored: resolve to a decision. It waits at most
   * two seconds for an open local transaction; then it throws, which an endpoint answers with UNKNOWN.
   */
  async check({ message_id, prepared_at }) {
    const { query, sql } = this.#database;
    await query(sql.fence, [this.#group, message_id], { timeout: 2000 });
    const prepared = Date.parse(prepared_at) / 1000 - 3600; // the clocks of both databases may differ
    const { rows } = await query(sql.look, [prepared, this.#group, message_id]);
    if (rows[0].outcome === "committed") return "COMMIT";
    return rows[0].purged ? "UNKNOWN" : "ROLLBACK";
  }

  /**
   * Delete rows older than `days`, at least 7; resolve to how many. It stores up to which time first, so that a check
   * of an older message is answered UNKNOWN.
   */
  async purge(days) {
    if (!(days >= 7)) throw new RangeError("rows are kept at least 7 days");
    const { query, sql } = this.#database;
    const horizon = [Date.now() / 1000 - days * 86_400];
    await query(sql.mark, horizon);
    await query(sql.remark, horizon);
    return (await query(sql.purge, horizon)).count;
  }
}
