-- name: undecided
-- Counts undecided messages by group and topic. Reads the oldest halves after the sweep's cursor, and of each class of the
-- check queue the first rows after its cursor, up to a limit; each half, op and parking by key. The oldest of a group with
-- a longer class are found by the index on ages. Never history: LATERAL ... OFFSET 0 and the scalar subqueries keep the
-- planner from joining whole tables. Locks nothing.
WITH sweep AS MATERIALIZED (
    SELECT coalesce((SELECT position FROM outbox.progress WHERE name = 'sweep'), 0) AS position
), unswept AS MATERIALIZED (
    SELECT h.*, count(*) OVER () = %(most)s::int8 AS capped
    FROM (
        SELECT half_id, producer_group_id, topic_id, prepared_at FROM outbox.half_message
        WHERE half_id > (SELECT position FROM sweep) ORDER BY half_id LIMIT %(most)s
    ) h
), class AS MATERIALIZED (
    SELECT c.*, least(%(most)s::int8, greatest(200, %(all)s::int8 / count(*) OVER ())) AS most
    FROM (
        SELECT c.producer_group_id, c.delay_seconds, c.position
        FROM outbox.check_class c
        CROSS JOIN LATERAL (
            SELECT FROM outbox.check_queue
            WHERE producer_group_id = c.producer_group_id AND delay_seconds = c.delay_seconds AND id > c.position LIMIT 1
        ) waiting
    ) c
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
    SELECT half_id, round, bool_or(capped) AS capped
    FROM (
        SELECT half_id, round, capped FROM first
        UNION ALL
        SELECT q.half_id, q.round, true
        FROM (SELECT DISTINCT producer_group_id FROM first WHERE capped) g
        CROSS JOIN LATERAL (
            SELECT half_id, round FROM outbox.check_queue WHERE producer_group_id = g.producer_group_id
            ORDER BY age_from LIMIT 100
        ) q
    ) q
    WHERE half_id <= (SELECT position FROM sweep)
    GROUP BY half_id, round
), undecided AS (
    SELECT half_id, producer_group_id, topic_id, prepared_at, capped FROM unswept
    UNION ALL
    SELECT h.half_id, h.producer_group_id, h.topic_id, h.prepared_at, q.capped
    FROM queued q
    CROSS JOIN LATERAL (
        SELECT half_id, producer_group_id, topic_id, prepared_at FROM outbox.half_message WHERE half_id = q.half_id
        UNION
        SELECT half_id, producer_group_id, topic_id, prepared_at FROM outbox.parked_message WHERE half_id = q.half_id
    ) h
    WHERE q.round = coalesce((SELECT round FROM outbox.recheck WHERE half_id = q.half_id), 1)
)
SELECT 'PREPARED' AS state, g.name AS producer_group, t.name AS topic, count(*) AS messages, bool_or(u.capped) AS capped,
    extract(epoch FROM clock_timestamp() - min(u.prepared_at))::float8 AS oldest_age_seconds, g.check_interval_seconds
FROM undecided u
JOIN outbox.producer_group g ON g.id = u.producer_group_id
JOIN outbox.topic t ON t.id = u.topic_id
WHERE (SELECT decision FROM outbox.op_message WHERE half_id = u.half_id) IS NULL
    AND (SELECT half_id FROM outbox.parked_message WHERE half_id = u.half_id AND resumed_at IS NULL) IS NULL
GROUP BY g.name, t.name, g.check_interval_seconds

-- name: parked
-- Counts parked messages by group and topic. Reads of each group the newest parkings that stand, up to a limit, and the
-- 100 oldest, and their ops by key. Decided ones stay until they are retired. Locks nothing.
WITH place AS MATERIALIZED (
    SELECT g.id, least(%(most)s::int8, greatest(200, %(all)s::int8 / count(*) OVER ())) AS most
    FROM outbox.producer_group g
    CROSS JOIN LATERAL (
        SELECT FROM outbox.parked_message WHERE producer_group_id = g.id AND resumed_at IS NULL LIMIT 1
    ) waiting
), parked AS MATERIALIZED (
    SELECT p.*, count(*) OVER (PARTITION BY place.id) >= place.most AS capped
    FROM place
    CROSS JOIN LATERAL (
        (SELECT half_id, producer_group_id, topic_id, prepared_at FROM outbox.parked_message
            WHERE producer_group_id = place.id AND resumed_at IS NULL ORDER BY half_id DESC LIMIT place.most)
        UNION
        (SELECT half_id, producer_group_id, topic_id, prepared_at FROM outbox.parked_message
            WHERE producer_group_id = place.id AND resumed_at IS NULL ORDER BY half_id LIMIT 100)
    ) p
)
SELECT 'PARKED' AS state, g.name AS producer_group, t.name AS topic, count(*) AS messages, bool_or(p.capped) AS capped,
    extract(epoch FROM clock_timestamp() - min(p.prepared_at))::float8 AS oldest_age_seconds, g.check_interval_seconds
FROM parked p
JOIN outbox.producer_group g ON g.id = p.producer_group_id
JOIN outbox.topic t ON t.id = p.topic_id
WHERE (SELECT decision FROM outbox.op_message WHERE half_id = p.half_id) IS NULL
GROUP BY g.name, t.name, g.check_interval_seconds

-- name: unpublished
-- Counts committed messages that are not published yet, by group and topic. Reads the oldest commits of each shard after
-- its relay's position, up to a limit, and each half by key. Locks nothing.
WITH unpublished AS (
    SELECT oldest.half_id, count(*) OVER (PARTITION BY s.shard) = %(all)s::int8 / 16 AS capped
    FROM generate_series(0, 15) s (shard)
    LEFT JOIN outbox.progress p ON p.name = 'relay:' || s.shard
    CROSS JOIN LATERAL (
        SELECT committed.half_id
        FROM (
            SELECT xid, half_ids FROM outbox.commit_log
            WHERE shard = s.shard AND xid >= coalesce(p.position, 0)
            ORDER BY xid
            LIMIT %(all)s::int8 / 16 + 1
        ) c
        CROSS JOIN LATERAL unnest(c.half_ids) WITH ORDINALITY AS committed (half_id, n)
        WHERE (c.xid, committed.n) > (coalesce(p.position, 0), coalesce(p.position_n, 0))
        LIMIT %(all)s::int8 / 16
    ) oldest
)
SELECT 'COMMITTED' AS state, g.name AS producer_group, t.name AS topic, count(*) AS messages, bool_or(u.capped) AS capped,
    extract(epoch FROM clock_timestamp() - min(h.prepared_at))::float8 AS oldest_age_seconds, g.check_interval_seconds
FROM unpublished u
CROSS JOIN LATERAL (
    SELECT producer_group_id, topic_id, prepared_at FROM outbox.half_message WHERE half_id = u.half_id
    UNION
    SELECT producer_group_id, topic_id, prepared_at FROM outbox.parked_message WHERE half_id = u.half_id
) h
JOIN outbox.producer_group g ON g.id = h.producer_group_id
JOIN outbox.topic t ON t.id = h.topic_id
GROUP BY g.name, t.name, g.check_interval_seconds

-- name: held
-- Counts messages that Kafka refuses, or that wait behind such a one, by group and topic. Finds the topics of each shard
-- one by one in the index, reads the first records of each up to its relay's position and a limit, and each half by key.
-- Locks nothing.
WITH RECURSIVE place AS (
    SELECT s.shard, f.redriven, f.topic_id
    FROM generate_series(0, 15) s (shard)
    CROSS JOIN LATERAL (
        SELECT coalesce(repair, '') AS redriven, topic_id FROM outbox.held_record
        WHERE shard = s.shard AND released_at IS NULL AND dropped_at IS NULL
        ORDER BY coalesce(repair, ''), topic_id LIMIT 1
    ) f
    UNION ALL
    SELECT p.shard, next.redriven, next.topic_id
    FROM place p
    CROSS JOIN LATERAL (
        SELECT coalesce(repair, '') AS redriven, topic_id FROM outbox.held_record
        WHERE shard = p.shard AND (coalesce(repair, ''), topic_id) > (p.redriven, p.topic_id)
            AND released_at IS NULL AND dropped_at IS NULL
        ORDER BY coalesce(repair, ''), topic_id LIMIT 1
    ) next
), scope AS MATERIALIZED (
    SELECT place.*, coalesce(p.position, 0) AS xid, coalesce(p.position_n, 0) AS n,
        least(%(most)s::int8, greatest(200, %(all)s::int8 / count(*) OVER ())) AS most
    FROM place LEFT JOIN outbox.progress p ON p.name = 'relay:' || place.shard
), held AS (
    SELECT h.half_id, count(*) OVER (PARTITION BY s.shard, s.redriven, s.topic_id) = s.most AS capped
    FROM scope s
    CROSS JOIN LATERAL (
        SELECT half_id FROM outbox.held_record
        WHERE shard = s.shard AND coalesce(repair, '') = s.redriven AND topic_id = s.topic_id AND (xid, n) <= (s.xid, s.n)
            AND released_at IS NULL AND dropped_at IS NULL
        ORDER BY xid, n LIMIT s.most
    ) h
)
SELECT 'HELD' AS state, g.name AS producer_group, t.name AS topic, count(*) AS messages, bool_or(held.capped) AS capped,
    extract(epoch FROM clock_timestamp() - min(h.prepared_at))::float8 AS oldest_age_seconds, g.check_interval_seconds
FROM held
CROSS JOIN LATERAL (
    SELECT producer_group_id, topic_id, prepared_at FROM outbox.half_message WHERE half_id = held.half_id
    UNION
    SELECT producer_group_id, topic_id, prepared_at FROM outbox.parked_message WHERE half_id = held.half_id
) h
JOIN outbox.producer_group g ON g.id = h.producer_group_id
JOIN outbox.topic t ON t.id = h.topic_id
GROUP BY g.name, t.name, g.check_interval_seconds

-- name: plain
-- Counts, by group, messages that producers' own transactions have published and that are not admitted yet: reads the
-- first ones by key, up to a limit.
SELECT 'PLAIN' AS state, g.name AS producer_group, t.name AS topic, count(*) AS messages, bool_or(w.capped) AS capped,
    extract(epoch FROM clock_timestamp() - min(w.published_at))::float8 AS oldest_age_seconds, g.check_interval_seconds
FROM (
    SELECT oldest.*, count(*) OVER () = %(most)s::int8 AS capped
    FROM (
        SELECT producer_group_id, topic_id, published_at FROM outbox.plain_message ORDER BY half_id LIMIT %(most)s
    ) oldest
) w
JOIN outbox.producer_group g ON g.id = w.producer_group_id
JOIN outbox.topic t ON t.id = w.topic_id
GROUP BY g.name, t.name, g.check_interval_seconds
