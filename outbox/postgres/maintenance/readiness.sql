-- name: revision
-- Returns whether the database was ever migrated.
SELECT to_regclass('outbox.alembic_version') IS NOT NULL AND to_regclass('outbox.progress') IS NOT NULL

-- name: state
-- Reads the newest applied migration, and the age of the latest heartbeat.
SELECT (SELECT version_num FROM outbox.alembic_version),
    (SELECT extract(epoch FROM clock_timestamp() - max(updated_at))::float8
     FROM outbox.progress WHERE name LIKE 'heartbeat:%%')

-- name: unfinished
-- Counts unfinished messages by state and group. Reads halves after the sweep's cursor, the check queue after its
-- cursors, parked messages, and the commit log after each relay's position.
WITH undecided AS MATERIALIZED (
    SELECT h.half_id, h.producer_group_id, h.prepared_at
    FROM outbox.half_message h
    WHERE h.half_id > coalesce((SELECT position FROM outbox.progress WHERE name = 'sweep'), 0)
    UNION
    SELECT q.half_id, q.producer_group_id, h.prepared_at
    FROM outbox.check_queue q
    JOIN outbox.check_class c USING (producer_group_id, delay_seconds)
    LEFT JOIN outbox.recheck r ON r.half_id = q.half_id
    CROSS JOIN LATERAL (
        SELECT prepared_at FROM outbox.half_message WHERE half_id = q.half_id
        UNION
        SELECT prepared_at FROM outbox.parked_message WHERE half_id = q.half_id
    ) h
    WHERE q.id > c.position AND q.round = coalesce(r.round, 1)
), standing AS (
    SELECT 'PREPARED' AS state, u.producer_group_id, u.prepared_at
    FROM undecided u
    WHERE NOT EXISTS (SELECT FROM outbox.op_message o WHERE o.half_id = u.half_id)
        AND NOT EXISTS (SELECT FROM outbox.parked_message p WHERE p.half_id = u.half_id AND p.resumed_at IS NULL)
    UNION ALL
    SELECT 'PARKED', p.producer_group_id, p.prepared_at
    FROM outbox.parked_message p
    WHERE p.resumed_at IS NULL AND NOT EXISTS (SELECT FROM outbox.op_message o WHERE o.half_id = p.half_id)
    UNION ALL
    SELECT 'COMMITTED', h.producer_group_id, h.prepared_at
    FROM outbox.commit_log c
    LEFT JOIN outbox.progress p ON p.name = 'relay:' || c.shard
    CROSS JOIN LATERAL unnest(c.half_ids) WITH ORDINALITY AS committed (half_id, n)
    CROSS JOIN LATERAL (
        SELECT producer_group_id, prepared_at FROM outbox.half_message WHERE half_id = committed.half_id
        UNION
        SELECT producer_group_id, prepared_at FROM outbox.parked_message WHERE half_id = committed.half_id
    ) h
    WHERE c.xid >= coalesce(p.position, 0)
        AND (c.xid, committed.n) > (coalesce(p.position, 0), coalesce(p.position_n, 0))
)
SELECT s.state, g.name AS producer_group, count(*) AS messages,
    extract(epoch FROM clock_timestamp() - min(s.prepared_at))::float8 AS oldest_age_seconds
FROM standing s
JOIN outbox.producer_group g ON g.id = s.producer_group_id
GROUP BY s.state, g.name

-- name: plain_backlog
-- Counts, by group, messages that producers' own transactions have published and that are not admitted yet.
SELECT 'PLAIN' AS state, g.name AS producer_group, count(*) AS messages,
    extract(epoch FROM clock_timestamp() - min(m.published_at))::float8 AS oldest_age_seconds
FROM outbox.plain_message m
JOIN outbox.producer_group g ON g.id = m.producer_group_id
GROUP BY g.name
