-- name: heartbeats
-- Reads, by key, the time of the last heartbeat of each task that must be alive; 0: it never ran, or not since the clock
-- was set back.
SELECT needed.task, coalesce(extract(epoch FROM p.updated_at), 0)::float8 AS beaten_at
FROM unnest(ARRAY['relay', 'check', 'sweep', 'retire', 'leaves']) AS needed (task)
LEFT JOIN outbox.progress p ON p.name = 'heartbeat:' || needed.task
    AND p.updated_at <= clock_timestamp() + interval '1 minute'

-- name: failing
-- Reads for how long all checks of a group have failed, if a half still waits for one and the checks are not paused:
-- one look-up by key for each group that fails, and one index probe for each of its delay classes.
SELECT g.name AS producer_group, extract(epoch FROM clock_timestamp() - f.updated_at)::float8 AS seconds
FROM outbox.progress f
JOIN outbox.producer_group g ON g.id = substr(f.name, 9)::int4
WHERE f.name LIKE 'failing:%%' AND g.deleted_at IS NULL AND NOT g.paused AND EXISTS (
    SELECT FROM outbox.check_class c
    CROSS JOIN LATERAL (
        SELECT FROM outbox.check_queue
        WHERE producer_group_id = c.producer_group_id AND delay_seconds = c.delay_seconds AND id > c.position
        LIMIT 1
    ) q
    WHERE c.producer_group_id = g.id)

-- name: paused
-- Reads the groups whose checks are paused; a group is one row.
SELECT name AS producer_group FROM outbox.producer_group WHERE paused_at IS NOT NULL AND deleted_at IS NULL

-- name: unfinished
-- Counts unfinished messages by state, group and topic, up to a bound: a larger number is a lower bound, and capped. Of an
-- undecided decision it counts the leader. Reads the oldest halves after the sweep's cursor; of each delay class of a group, the first rows of the check queue after its
-- cursor, and of a group with more the oldest by age; of each group its newest parkings, of each shard the oldest commits
-- after its relay's position and the oldest held records up to it; and plain messages by key. Classes share a
-- bound, so a few messages of one are found beside very many of another. Each half, op and parking is read by key:
-- LATERAL ... OFFSET 0 and the scalar subqueries keep the planner from joining whole tables. Never history. Locks nothing.
WITH sweep AS MATERIALIZED (
    SELECT coalesce((SELECT position FROM outbox.progress WHERE name = 'sweep'), 0) AS position
), relay AS MATERIALIZED (
    SELECT s.shard, coalesce(p.position, 0) AS xid, coalesce(p.position_n, 0) AS n
    FROM generate_series(0, 15) s (shard) LEFT JOIN outbox.progress p ON p.name = 'relay:' || s.shard
), class AS MATERIALIZED (
    SELECT c.*, least(%(most)s::int8, greatest(200, %(all)s::int8 / count(*) OVER ())) AS most
    FROM outbox.check_class c
    CROSS JOIN LATERAL (
        SELECT FROM outbox.check_queue
        WHERE producer_group_id = c.producer_group_id AND delay_seconds = c.delay_seconds AND id > c.position LIMIT 1
    ) waiting
), first AS MATERIALIZED (
    SELECT c.producer_group_id, q.half_id, q.round,
        count(*) OVER (PARTITION BY c.producer_group_id, c.delay_seconds) = c.most AS capped
    FROM class c
    CROSS JOIN LATERAL (
        SELECT half_id, round FROM outbox.check_queue
        WHERE producer_group_id = c.producer_group_id AND delay_seconds = c.delay_seconds AND id > c.position
        ORDER BY id LIMIT c.most
    ) q
), queued AS (
    SELECT half_id, round, capped FROM first
    UNION ALL
    SELECT q.half_id, q.round, true
    FROM (SELECT DISTINCT producer_group_id FROM first WHERE capped) g
    CROSS JOIN LATERAL (
        SELECT half_id, round FROM outbox.check_queue WHERE producer_group_id = g.producer_group_id
        ORDER BY age_from LIMIT 100
    ) q
), open AS (
    SELECT 'PREPARED' AS state, half_id, count(*) OVER () = %(most)s::int8 AS capped
    FROM (
        SELECT half_id FROM outbox.half_message
        WHERE half_id > (SELECT position FROM sweep) AND leader_id IS NULL ORDER BY half_id LIMIT %(most)s
    ) unswept
    UNION ALL
    SELECT 'PREPARED', half_id, bool_or(capped) FROM queued
    WHERE half_id <= (SELECT position FROM sweep)
        AND round = coalesce((SELECT round FROM outbox.recheck r WHERE r.half_id = queued.half_id), 1)
    GROUP BY half_id
    UNION ALL
    SELECT 'PARKED', p.half_id, count(*) OVER (PARTITION BY g.id) = %(most)s::int8
    FROM outbox.producer_group g
    CROSS JOIN LATERAL (
        SELECT half_id FROM outbox.parked_message
        WHERE producer_group_id = g.id AND resumed_at IS NULL ORDER BY half_id DESC LIMIT %(most)s
    ) p
    UNION ALL
    SELECT 'COMMITTED', c.half_id, count(*) OVER (PARTITION BY relay.shard) = %(all)s::int8 / 16
    FROM relay
    CROSS JOIN LATERAL (
        SELECT i.half_id
        FROM (
            SELECT xid, half_ids FROM outbox.commit_log WHERE shard = relay.shard AND xid >= relay.xid
            ORDER BY xid LIMIT %(all)s::int8 / 16 + 1
        ) l
        CROSS JOIN LATERAL unnest(l.half_ids) WITH ORDINALITY AS i (half_id, n)
        WHERE (l.xid, i.n) > (relay.xid, relay.n)
        LIMIT %(all)s::int8 / 16
    ) c
    UNION ALL
    SELECT 'HELD', h.half_id, count(*) OVER (PARTITION BY relay.shard) = %(all)s::int8 / 16
    FROM relay
    CROSS JOIN LATERAL (
        SELECT half_id FROM outbox.held_record
        WHERE shard = relay.shard AND (xid, n) <= (relay.xid, relay.n) AND released_at IS NULL AND dropped_at IS NULL
        ORDER BY xid, n LIMIT %(all)s::int8 / 16
    ) h
), found AS (
    SELECT open.state, h.producer_group_id, h.topic_id, h.prepared_at AS since, open.capped
    FROM open
    CROSS JOIN LATERAL (
        SELECT producer_group_id, topic_id, prepared_at FROM outbox.half_message WHERE half_id = open.half_id OFFSET 0
    ) h
    WHERE open.state IN ('COMMITTED', 'HELD')
        OR (SELECT decision FROM outbox.op_message WHERE half_id = open.half_id) IS NULL
        AND (open.state = 'PARKED'
            OR (SELECT half_id FROM outbox.parked_message WHERE half_id = open.half_id AND resumed_at IS NULL) IS NULL)
    UNION ALL
    SELECT 'PLAIN', producer_group_id, topic_id, published_at, count(*) OVER () = %(most)s::int8
    FROM (
        SELECT producer_group_id, topic_id, published_at FROM outbox.plain_message ORDER BY half_id LIMIT %(most)s
    ) plain
)
SELECT f.state, g.name AS producer_group, t.name AS topic, count(*) AS messages, bool_or(f.capped) AS capped,
    extract(epoch FROM clock_timestamp() - min(f.since))::float8 AS oldest_age_seconds, g.check_interval_seconds
FROM found f
JOIN outbox.producer_group g ON g.id = f.producer_group_id
JOIN outbox.topic t ON t.id = f.topic_id
GROUP BY f.state, g.name, t.name, g.check_interval_seconds
