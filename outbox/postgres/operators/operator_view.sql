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

-- name: chores
-- Reads the heartbeats: one row per chore.
SELECT substr(name, 11) AS chore, extract(epoch FROM clock_timestamp() - updated_at)::float8 AS seconds_ago
FROM outbox.progress WHERE name LIKE 'heartbeat:%%' ORDER BY name

-- name: without_leaf
-- Reads the tables that have rows in their default leaf that belong in a leaf.
SELECT table_name FROM outbox.missing_leaf WHERE leaf IS NOT NULL ORDER BY table_name
