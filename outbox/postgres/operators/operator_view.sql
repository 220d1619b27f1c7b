-- name: shards
-- Reads the sixteen relay rows by key, and of each shard's commit log at most 1 000 rows after its position.
SELECT s.shard, p.owner, coalesce(p.position, 0) AS position, p.halt_reason, p.updated_at,
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

-- name: paused
-- Reads the paused groups: who paused them, since when, and why.
SELECT name, coalesce(paused_by, 'a caller without a key') AS paused_by, pause_reason,
    to_char(paused_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') AS since
FROM outbox.producer_group WHERE paused_at IS NOT NULL AND deleted_at IS NULL ORDER BY paused_at

-- name: without_leaf
-- Reads the tables that have rows in their default leaf that belong in a leaf.
SELECT table_name FROM outbox.missing_leaf WHERE leaf IS NOT NULL ORDER BY table_name

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
-- many of them ago that was; and whether autovacuum runs. Locks nothing.
SELECT datname::text AS database, ids, age,
    current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean AS vacuums
FROM pg_database CROSS JOIN LATERAL (VALUES ('transactions', age(datfrozenxid)), ('multixacts', mxid_age(datminmxid)))
    AS each (ids, age)
ORDER BY age DESC, 1, 2 LIMIT 1

-- name: write
-- Writes a megabyte into a temporary table, which extends a file on the database's disk; the caller rolls it back.
CREATE TEMPORARY TABLE outbox_room AS SELECT repeat('x', 120) AS filled FROM generate_series(1, 8192)
