-- name: newest_xid
-- Reads the based xid that comes next, and the time in seconds. Locks nothing.
SELECT pg_snapshot_xmax(pg_current_snapshot())::text::int8 + base AS xid, extract(epoch FROM clock_timestamp())::float8 AS at
FROM outbox.installation

-- name: missing
-- Reads, lowest first, the leaves that are missing: from the watermark's to the given number behind that of the newest
-- xid, and the first one of each table that has rows without a leaf. Locks nothing.
SELECT leaf FROM (
    SELECT leaf FROM outbox.missing_leaf WHERE leaf IS NOT NULL
    UNION
    SELECT generate_series(outbox.watermark() >> 20,
        ((pg_snapshot_xmax(pg_current_snapshot())::text::int8 + base) >> 20) + %(count)s)
    FROM outbox.installation
) wanted
WHERE to_regclass('outbox.half_message_' || leaf) IS NULL
ORDER BY leaf

-- name: create_leaf
-- Creates one leaf of each table and moves its rows out of the default leaf, if they are few. Locks the default leaves for
-- an instant, and all leaves if a transaction may use this one already. Gives up a wait after 50 ms.
SELECT outbox.create_leaf(%(leaf)s)

-- name: default_rows
-- Reads for each partitioned table whether its default leaf has rows that belong in a leaf. Locks nothing.
SELECT table_name, leaf IS NOT NULL AS found FROM outbox.missing_leaf
