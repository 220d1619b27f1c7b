-- name: unfinished
-- Counts unfinished messages by state, group and topic. Reads halves after the sweep's cursor, the check queue after
-- each class's cursor, standing parkings, the oldest commits of each shard after its relay's position, and held records;
-- each half and op by key. Never history: LATERAL ... OFFSET 0 and the scalar subqueries keep the planner from joining
-- whole tables. Of a longer backlog of a shard each message that is read counts for those behind it: as many as the
-- shard's xids up to its newest commit are to those that were read. Locks nothing.
WITH undecided AS MATERIALIZED (
    SELECT h.half_id, h.producer_group_id, h.topic_id, h.prepared_at
    FROM outbox.half_message h
    WHERE h.half_id > coalesce((SELECT position FROM outbox.progress WHERE name = 'sweep'), 0)
    UNION
    SELECT h.half_id, h.producer_group_id, h.topic_id, h.prepared_at
    FROM outbox.check_class c
    CROSS JOIN LATERAL (
        SELECT half_id, round FROM outbox.check_queue
        WHERE producer_group_id = c.producer_group_id AND delay_seconds = c.delay_seconds AND id > c.position
        OFFSET 0
    ) q
    CROSS JOIN LATERAL (
        SELECT half_id, producer_group_id, topic_id, prepared_at FROM outbox.half_message WHERE half_id = q.half_id
        UNION
        SELECT half_id, producer_group_id, topic_id, prepared_at FROM outbox.parked_message WHERE half_id = q.half_id
    ) h
    WHERE q.round = coalesce((SELECT round FROM outbox.recheck WHERE half_id = q.half_id), 1)
), unpublished AS (
    SELECT oldest.half_id, CASE WHEN oldest.messages < %(most)s::int8 THEN 1.0
        ELSE (newest.xid - oldest.first_xid + 1)::float8 / (oldest.last_xid - oldest.first_xid + 1) END AS stands_for
    FROM generate_series(0, 15) s (shard)
    LEFT JOIN outbox.progress p ON p.name = 'relay:' || s.shard
    CROSS JOIN LATERAL (
        SELECT half_id, count(*) OVER () AS messages, min(xid) OVER () AS first_xid, max(xid) OVER () AS last_xid
        FROM (
            SELECT c.xid, committed.half_id
            FROM (
                SELECT xid, half_ids FROM outbox.commit_log
                WHERE shard = s.shard AND xid >= coalesce(p.position, 0)
                ORDER BY xid
                LIMIT %(most)s::int8 + 1
            ) c
            CROSS JOIN LATERAL unnest(c.half_ids) WITH ORDINALITY AS committed (half_id, n)
            WHERE (c.xid, committed.n) > (coalesce(p.position, 0), coalesce(p.position_n, 0))
            LIMIT %(most)s
        ) after_position
    ) oldest
    CROSS JOIN LATERAL (
        SELECT xid FROM outbox.commit_log WHERE shard = s.shard ORDER BY xid DESC LIMIT 1
    ) newest
), held AS (
    SELECT r.half_id
    FROM outbox.held_record r
    LEFT JOIN outbox.progress p ON p.name = 'relay:' || r.shard
    WHERE r.released_at IS NULL AND r.dropped_at IS NULL
        AND (r.xid, r.n) <= (coalesce(p.position, 0), coalesce(p.position_n, 0))
), standing AS (
    SELECT 'PREPARED' AS state, u.producer_group_id, u.topic_id, u.prepared_at, 1.0::float8 AS stands_for
    FROM undecided u
    WHERE (SELECT decision FROM outbox.op_message WHERE half_id = u.half_id) IS NULL
        AND (SELECT half_id FROM outbox.parked_message WHERE half_id = u.half_id AND resumed_at IS NULL) IS NULL
    UNION ALL
    SELECT 'PARKED', p.producer_group_id, p.topic_id, p.prepared_at, 1.0
    FROM outbox.parked_message p
    WHERE p.resumed_at IS NULL AND (SELECT decision FROM outbox.op_message WHERE half_id = p.half_id) IS NULL
    UNION ALL
    SELECT u.state, h.producer_group_id, h.topic_id, h.prepared_at, u.stands_for
    FROM (
        SELECT 'COMMITTED' AS state, half_id, stands_for FROM unpublished UNION ALL SELECT 'HELD', half_id, 1.0 FROM held
    ) u
    CROSS JOIN LATERAL (
        SELECT producer_group_id, topic_id, prepared_at FROM outbox.half_message WHERE half_id = u.half_id
        UNION
        SELECT producer_group_id, topic_id, prepared_at FROM outbox.parked_message WHERE half_id = u.half_id
    ) h
)
SELECT s.state, g.name AS producer_group, t.name AS topic, round(sum(s.stands_for))::int8 AS messages,
    extract(epoch FROM clock_timestamp() - min(s.prepared_at))::float8 AS oldest_age_seconds,
    g.check_interval_seconds
FROM standing s
JOIN outbox.producer_group g ON g.id = s.producer_group_id
JOIN outbox.topic t ON t.id = s.topic_id
GROUP BY s.state, g.name, t.name, g.check_interval_seconds

-- name: plain_backlog
-- Counts, by group, messages that producers' own transactions have published and that are not admitted yet.
SELECT 'PLAIN' AS state, g.name AS producer_group, t.name AS topic, count(*) AS messages,
    extract(epoch FROM clock_timestamp() - min(m.published_at))::float8 AS oldest_age_seconds,
    g.check_interval_seconds
FROM outbox.plain_message m
JOIN outbox.producer_group g ON g.id = m.producer_group_id
JOIN outbox.topic t ON t.id = m.topic_id
GROUP BY g.name, t.name, g.check_interval_seconds

-- name: heartbeats
-- Reads, by key, the time of the last heartbeat of each task that must be alive; 0: it never ran, or not since the clock
-- was set back.
SELECT needed.chore, coalesce(extract(epoch FROM p.updated_at), 0)::float8 AS beaten_at
FROM unnest(ARRAY['relay', 'check', 'sweep', 'retire', 'leaves']) AS needed (chore)
LEFT JOIN outbox.progress p ON p.name = 'heartbeat:' || needed.chore
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

-- name: table_facts
-- Reads PostgreSQL's statistics of our tables, a partitioned one as the sum of its leaves: the estimated rows, and the
-- time of the last vacuum. Leaves out the copy of a default leaf and what it has replaced. Counts no row.
SELECT coalesce(parent.relname, s.relname)::text AS "table", sum(s.n_live_tup)::float8 AS live_rows,
    extract(epoch FROM max(greatest(s.last_vacuum, s.last_autovacuum)))::float8 AS vacuumed_at
FROM pg_stat_user_tables s
LEFT JOIN pg_inherits i ON i.inhrelid = s.relid
LEFT JOIN pg_class parent ON parent.oid = i.inhparent
WHERE s.schemaname = 'outbox' AND s.relname !~ '_(next|replaced)(_|$)'
GROUP BY 1
