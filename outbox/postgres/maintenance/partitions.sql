-- name: newest_xid
-- Reads the based xid that comes next, and the time in seconds. Locks nothing.
SELECT pg_snapshot_xmax(pg_current_snapshot())::text::int8 + base, extract(epoch FROM clock_timestamp())::float8
FROM outbox.installation

-- name: end_frozen_sessions
-- Ends sessions of our programs that keep PostgreSQL waiting in the middle of a statement, and returns them (migration
-- 0034).
SELECT program, pid, host FROM outbox.end_frozen_programs(%(seconds)s)

-- name: missing
-- Reads, lowest first, the leaves that are missing: from the watermark's to the given number behind that of the newest
-- xid, and the first one of each table that has rows without a leaf. While default leaves are copied, all these: the
-- creation of one does the next step. Locks nothing.
SELECT leaf FROM (
    SELECT leaf FROM outbox.missing_leaf WHERE leaf IS NOT NULL
    UNION
    SELECT generate_series(outbox.watermark() >> 20,
        ((pg_snapshot_xmax(pg_current_snapshot())::text::int8 + base) >> 20) + %(count)s)
    FROM outbox.installation
) wanted
WHERE to_regclass('outbox.half_message_' || leaf) IS NULL OR to_regclass('outbox.half_message_next') IS NOT NULL
ORDER BY leaf

-- name: create_leaf
-- Creates one leaf of each table and moves its rows out of the default leaf. If many rows are there, does the next step
-- of copying them instead (migration 0030). Locks the default leaves for an instant, and all leaves if a transaction may use
-- this one already (migration 0032). Gives up after 50 ms.
SELECT outbox.create_leaf(%(leaf)s)

-- name: default_rows
-- Reads for each partitioned table whether its default leaf has rows that belong in a leaf. Locks nothing.
SELECT table_name, leaf IS NOT NULL FROM outbox.missing_leaf
