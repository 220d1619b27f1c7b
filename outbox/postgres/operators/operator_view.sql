-- name: shards
-- Reads the sixteen relay rows by key, and of each shard's commit log at most 1 000 rows after its position.
SELECT s.shard, p.owner, coalesce(p.position, 0) AS position, p.manifest_offset, p.batch_no, p.gen, p.halt_reason, p.updated_at,
    b.messages AS backlog
FROM generate_series(0, 15) AS s (shard)
LEFT JOIN outbox.progress p ON p.name = 'relay:' || s.shard
CROSS JOIN LATERAL (
    SELECT coalesce(sum(cardinality(c.half_ids) - CASE WHEN c.xid = p.position THEN p.position_n ELSE 0 END), 0)::bigint AS messages
    FROM (
        SELECT xid, half_ids FROM outbox.commit_log
        WHERE shard = s.shard AND xid >= coalesce(p.position, 0)
        ORDER BY xid LIMIT 1000
    ) c
) b
ORDER BY s.shard

-- name: tasks
-- Reads the heartbeats: one row per task of the checker.
SELECT substr(name, 11) AS chore, extract(epoch FROM clock_timestamp() - updated_at)::float8 AS seconds_ago
FROM outbox.progress WHERE name LIKE 'heartbeat:%%' ORDER BY name

-- name: without_leaf
-- Reads the tables that have rows in their default leaf that belong in a leaf.
SELECT table_name FROM outbox.missing_leaf WHERE leaf IS NOT NULL ORDER BY table_name

-- name: leaf_locks
-- Reads from the catalogue how many leaves a table has, and how many locks the server has room for in a transaction.
SELECT (SELECT count(*)::integer FROM pg_inherits WHERE inhparent = 'outbox.half_message'::regclass) AS leaves,
    current_setting('max_locks_per_transaction')::integer AS room

-- name: topics
-- Reads the names of all topics: a small table.
SELECT name FROM outbox.topic ORDER BY name

-- name: watermark_holder
-- Reads the session that holds the watermark back, and since when at least: the first message that was prepared after
-- its transaction began. Returns no row if nothing was prepared since, or no transaction is open.
SELECT session.pid, session.usename::text AS role, session.datname::text AS database, session.application_name AS program,
    extract(epoch FROM clock_timestamp() - waiting.prepared_at)::float8 AS seconds
FROM outbox.installation i
JOIN pg_stat_activity session ON session.backend_xid = (outbox.watermark() - i.base)::text::xid8::xid
CROSS JOIN LATERAL (
    SELECT prepared_at FROM outbox.half_message
    WHERE half_id >= (SELECT outbox.watermark() << 15)
    ORDER BY half_id
    LIMIT 1
) waiting

-- name: collation
-- Reads from the catalogue with which version of the operating system's or ICU's order of texts the indexes of this
-- database were made, and which one the server has now. NULL: an order without versions.
SELECT datname::text AS database, datcollversion AS made_with, pg_database_collation_actual_version(oid) AS present
FROM pg_database WHERE datname = current_database()

-- name: oldest_database
-- Reads from the catalogue the database of the server with the oldest transaction or multixact that is not frozen, and how
-- many of them ago that was. Locks nothing.
SELECT datname::text AS database, ids, age
FROM pg_database CROSS JOIN LATERAL (VALUES ('transactions', age(datfrozenxid)), ('multixacts', mxid_age(datminmxid)))
    AS each (ids, age)
ORDER BY age DESC, 1, 2 LIMIT 1

-- name: oldest_reader
-- Reads who may still see the oldest rows of this database, so that no vacuum removes them: a session, a standby or a
-- replication slot; and how many transactions ago that was. Vacuums do not count. Locks nothing.
SELECT holder, command, age
FROM (
    SELECT format('pid %s of role %s (%s)', pid, coalesce(usename, 'none'), coalesce(nullif(application_name, ''), 'no name')),
        format('SELECT * FROM pg_stat_activity WHERE pid = %s', pid), age(backend_xmin)
    FROM pg_stat_activity
    WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
        AND (datid IS NULL OR datname = current_database() AND usesysid IS NOT NULL)
    UNION ALL
    SELECT format('replication slot %s (%s)', slot_name, CASE WHEN active THEN 'in use' ELSE 'not in use' END),
        'SELECT * FROM pg_replication_slots', greatest(age(xmin), age(catalog_xmin))
    FROM pg_replication_slots
    WHERE xmin IS NOT NULL OR catalog_xmin IS NOT NULL
    UNION ALL
    SELECT format('prepared transaction %s of role %s', gid, owner), 'SELECT * FROM pg_prepared_xacts', age(transaction)
    FROM pg_prepared_xacts
) AS each (holder, command, age)
ORDER BY age DESC, holder LIMIT 1

-- name: connections
-- Reads which limit of connections is the tightest for our programs: the server's, without what it reserves, the
-- database's, or that of one of our roles. Parallel workers count as connections here. Locks nothing.
WITH open AS MATERIALIZED (
    SELECT datid, usesysid FROM pg_stat_activity WHERE datid IS NOT NULL AND usesysid IS NOT NULL
)
SELECT place, used::integer, most
FROM (
    SELECT 'the server', (SELECT count(*) FROM open),
        current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
            - coalesce(current_setting('reserved_connections', true), '0')::integer
    UNION ALL
    SELECT 'database ' || datname, (SELECT count(*) FROM open WHERE datid = d.oid), datconnlimit
    FROM pg_database d WHERE datname = current_database() AND datconnlimit >= 0
    UNION ALL
    SELECT 'role ' || rolname, (SELECT count(*) FROM open WHERE usesysid = r.oid), rolconnlimit
    FROM pg_roles r
    WHERE rolname IN ('outbox_api', 'outbox_checker', 'outbox_reconcile', current_user) AND rolconnlimit >= 0
        AND NOT rolsuper
) AS each (place, used, most)
ORDER BY most - used, place LIMIT 1

-- name: migrated
-- Returns whether the database was ever migrated.
SELECT to_regclass('outbox.alembic_version') IS NOT NULL AS migrated

-- name: revision
-- Reads the newest applied migration.
SELECT version_num FROM outbox.alembic_version

-- name: write
-- Writes a megabyte into a temporary table, which extends a file on the database's disk; the caller rolls it back.
CREATE TEMPORARY TABLE outbox_room AS SELECT repeat('x', 120) AS filled FROM generate_series(1, 8192)
