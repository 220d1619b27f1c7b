-- name: undecided
-- Counts undecided messages by group and topic. Reads the oldest halves after the sweep's cursor, and of each class of the
-- check queue the first rows after its cursor; each half, op and parking by key. What is longer is estimated: of halves
-- that are not swept by their xids, of a class by some pages of the queue, of whose rows some are looked up. The oldest of
-- a group with such a class are found by the index on ages. Never history: LATERAL ... OFFSET 0 and the scalar subqueries
-- keep the planner from joining whole tables. Locks nothing.
WITH sweep AS MATERIALIZED (
    SELECT coalesce((SELECT position FROM outbox.progress WHERE name = 'sweep'), 0) AS position
), oldest AS MATERIALIZED (
    SELECT half_id, producer_group_id, topic_id, prepared_at FROM outbox.half_message
    WHERE half_id > (SELECT position FROM sweep) ORDER BY half_id LIMIT 2 * %(most)s::int8
), unswept AS (
    SELECT oldest.*, CASE WHEN read.messages < 2 * %(most)s::int8 THEN 1.0
        ELSE ((read.newest >> 15) - read.first_xid + 1)::float8 / (read.last_xid - read.first_xid + 1) END AS stands_for
    FROM oldest CROSS JOIN (
        SELECT count(*) AS messages, min(half_id) >> 15 AS first_xid, max(half_id) >> 15 AS last_xid, (
            SELECT half_id FROM outbox.half_message
            WHERE half_id > (SELECT position FROM sweep) ORDER BY half_id DESC LIMIT 1
        ) AS newest FROM oldest
    ) read
), class AS MATERIALIZED (
    SELECT c.*, least(%(most)s::int8, greatest(%(most)s::int8 / 50, 8 * %(most)s::int8 / count(*) OVER ())) AS most
    FROM (
        SELECT c.producer_group_id, c.delay_seconds, c.position
        FROM outbox.check_class c
        CROSS JOIN LATERAL (
            SELECT FROM outbox.check_queue
            WHERE producer_group_id = c.producer_group_id AND delay_seconds = c.delay_seconds AND id > c.position LIMIT 1
        ) waiting
    ) c
), first AS MATERIALIZED (
    SELECT c.producer_group_id, c.delay_seconds, q.half_id, q.round,
        count(*) OVER (PARTITION BY c.producer_group_id, c.delay_seconds) > c.most AS more
    FROM class c
    CROSS JOIN LATERAL (
        SELECT half_id, round FROM outbox.check_queue
        WHERE producer_group_id = c.producer_group_id AND delay_seconds = c.delay_seconds AND id > c.position
        ORDER BY id LIMIT c.most + 1
    ) q
), long AS MATERIALIZED (
    SELECT c.* FROM class c JOIN (SELECT DISTINCT producer_group_id, delay_seconds FROM first WHERE more) f
        USING (producer_group_id, delay_seconds)
), sample AS MATERIALIZED (
    SELECT least(1, %(most)s::float8 / 4 * current_setting('block_size')::int8
        / greatest(1, pg_relation_size('outbox.check_queue'))) AS share
    WHERE EXISTS (SELECT FROM long)
), page AS MATERIALIZED (
    SELECT q.* FROM sample
    CROSS JOIN LATERAL (
        SELECT producer_group_id, delay_seconds, id, half_id, round
        FROM outbox.check_queue TABLESAMPLE SYSTEM (100 * sample.share) REPEATABLE (0)
    ) q
), counted AS MATERIALIZED (
    SELECT l.producer_group_id, l.delay_seconds, l.position, least(1, l.most::float8 / count(*)) AS part
    FROM page JOIN long l USING (producer_group_id, delay_seconds)
    WHERE page.id > l.position
    GROUP BY l.producer_group_id, l.delay_seconds, l.position, l.most
), queued AS (
    SELECT half_id, round, max(stands_for) AS stands_for
    FROM (
        SELECT f.half_id, f.round, 1.0::float8 AS stands_for
        FROM first f LEFT JOIN counted c USING (producer_group_id, delay_seconds)
        WHERE c.part IS NULL
        UNION ALL
        SELECT page.half_id, page.round, 1 / (c.part * sample.share)
        FROM page JOIN counted c USING (producer_group_id, delay_seconds) CROSS JOIN sample
        WHERE page.id > c.position AND (hashint8(page.half_id) & 65535) < 65536 * c.part
        UNION ALL
        SELECT q.half_id, q.round, 0
        FROM (SELECT DISTINCT producer_group_id FROM long) g
        CROSS JOIN LATERAL (
            SELECT half_id, round FROM outbox.check_queue WHERE producer_group_id = g.producer_group_id
            ORDER BY age_from LIMIT %(most)s::int8 / 10
        ) q
    ) q
    WHERE half_id <= (SELECT position FROM sweep)
    GROUP BY half_id, round
), undecided AS (
    SELECT half_id, producer_group_id, topic_id, prepared_at, stands_for FROM unswept
    UNION ALL
    SELECT h.half_id, h.producer_group_id, h.topic_id, h.prepared_at, q.stands_for
    FROM queued q
    CROSS JOIN LATERAL (
        SELECT half_id, producer_group_id, topic_id, prepared_at FROM outbox.half_message WHERE half_id = q.half_id
        UNION
        SELECT half_id, producer_group_id, topic_id, prepared_at FROM outbox.parked_message WHERE half_id = q.half_id
    ) h
    WHERE q.round = coalesce((SELECT round FROM outbox.recheck WHERE half_id = q.half_id), 1)
)
SELECT 'PREPARED' AS state, g.name AS producer_group, t.name AS topic,
    greatest(count(*), round(sum(u.stands_for)))::int8 AS messages,
    extract(epoch FROM clock_timestamp() - min(u.prepared_at))::float8 AS oldest_age_seconds,
    g.check_interval_seconds
FROM undecided u
JOIN outbox.producer_group g ON g.id = u.producer_group_id
JOIN outbox.topic t ON t.id = u.topic_id
WHERE (SELECT decision FROM outbox.op_message WHERE half_id = u.half_id) IS NULL
    AND (SELECT half_id FROM outbox.parked_message WHERE half_id = u.half_id AND resumed_at IS NULL) IS NULL
GROUP BY g.name, t.name, g.check_interval_seconds

-- name: parked
-- Counts parked messages by group and topic. Reads of each group the first parkings that stand, and their ops by key. Of a
-- group with more, some pages of the table are read, and some of its parkings in them stand for the others; its oldest
-- and newest are read too. Decided ones stay until they are retired. Locks nothing.
WITH first AS MATERIALIZED (
    SELECT g.id AS producer_group_id, p.half_id, count(*) OVER (PARTITION BY g.id) > %(most)s::int8 AS more
    FROM outbox.producer_group g
    CROSS JOIN LATERAL (
        SELECT half_id FROM outbox.parked_message WHERE producer_group_id = g.id AND resumed_at IS NULL
        ORDER BY half_id LIMIT %(most)s::int8 + 1
    ) p
), long AS MATERIALIZED (
    SELECT DISTINCT producer_group_id FROM first WHERE more
), sample AS MATERIALIZED (
    SELECT least(1, %(most)s::float8 / 4 * current_setting('block_size')::int8
        / greatest(1, pg_relation_size('outbox.parked_message'))) AS share
    WHERE EXISTS (SELECT FROM long)
), page AS MATERIALIZED (
    SELECT p.* FROM sample
    CROSS JOIN LATERAL (
        SELECT producer_group_id, half_id FROM outbox.parked_message TABLESAMPLE SYSTEM (100 * sample.share) REPEATABLE (0)
        WHERE resumed_at IS NULL
    ) p
), counted AS MATERIALIZED (
    SELECT producer_group_id, least(1, %(most)s::float8 / count(*)) AS part
    FROM page JOIN long USING (producer_group_id)
    GROUP BY producer_group_id
), parked AS (
    SELECT half_id, max(stands_for) AS stands_for
    FROM (
        SELECT f.half_id, CASE WHEN c.part IS NULL THEN 1.0::float8 ELSE 0 END AS stands_for
        FROM first f LEFT JOIN counted c USING (producer_group_id)
        UNION ALL
        SELECT page.half_id, 1 / (c.part * sample.share)
        FROM page JOIN counted c USING (producer_group_id) CROSS JOIN sample
        WHERE (hashint8(page.half_id) & 65535) < 65536 * c.part
        UNION ALL
        SELECT p.half_id, 0 FROM long l
        CROSS JOIN LATERAL (
            SELECT half_id FROM outbox.parked_message WHERE producer_group_id = l.producer_group_id AND resumed_at IS NULL
            ORDER BY half_id DESC LIMIT %(most)s
        ) p
    ) p
    GROUP BY half_id
)
SELECT 'PARKED' AS state, g.name AS producer_group, t.name AS topic,
    greatest(count(*), round(sum(parked.stands_for)))::int8 AS messages,
    extract(epoch FROM clock_timestamp() - min(p.prepared_at))::float8 AS oldest_age_seconds,
    g.check_interval_seconds
FROM parked
CROSS JOIN LATERAL (
    SELECT producer_group_id, topic_id, prepared_at FROM outbox.parked_message
    WHERE half_id = parked.half_id AND resumed_at IS NULL OFFSET 0
) p
JOIN outbox.producer_group g ON g.id = p.producer_group_id
JOIN outbox.topic t ON t.id = p.topic_id
WHERE (SELECT decision FROM outbox.op_message WHERE half_id = parked.half_id) IS NULL
GROUP BY g.name, t.name, g.check_interval_seconds

-- name: unpublished
-- Counts committed messages that are not published yet, by group and topic. Reads the oldest commits of each shard after
-- its relay's position, and each half by key. Of a longer backlog of a shard each message that is read counts for those
-- behind it: as many as the shard's xids up to its newest commit are to those that were read. Locks nothing.
WITH shard AS MATERIALIZED (
    SELECT s.shard, p.position, p.position_n, (
        SELECT xid FROM outbox.commit_log WHERE shard = s.shard AND xid >= coalesce(p.position, 0) ORDER BY xid DESC LIMIT 1
    ) AS newest
    FROM generate_series(0, 15) s (shard)
    LEFT JOIN outbox.progress p ON p.name = 'relay:' || s.shard
), unpublished AS (
    SELECT oldest.half_id, CASE WHEN oldest.messages < %(most)s::int8 THEN 1.0
        ELSE (p.newest - oldest.first_xid + 1)::float8 / (oldest.last_xid - oldest.first_xid + 1) END AS stands_for
    FROM shard p
    CROSS JOIN LATERAL (
        SELECT half_id, count(*) OVER () AS messages, min(xid) OVER () AS first_xid, max(xid) OVER () AS last_xid
        FROM (
            SELECT c.xid, committed.half_id
            FROM (
                SELECT xid, half_ids FROM outbox.commit_log
                WHERE shard = p.shard AND xid >= coalesce(p.position, 0)
                ORDER BY xid
                LIMIT %(most)s::int8 + 1
            ) c
            CROSS JOIN LATERAL unnest(c.half_ids) WITH ORDINALITY AS committed (half_id, n)
            WHERE (c.xid, committed.n) > (coalesce(p.position, 0), coalesce(p.position_n, 0))
            LIMIT %(most)s
        ) after_position
    ) oldest
)
SELECT 'COMMITTED' AS state, g.name AS producer_group, t.name AS topic, round(sum(u.stands_for))::int8 AS messages,
    extract(epoch FROM clock_timestamp() - min(h.prepared_at))::float8 AS oldest_age_seconds,
    g.check_interval_seconds
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
-- one by one in the index, reads the first records of each up to its relay's position, and each half by key. Of a topic
-- with more, some pages of the table are read, and some of its records in them stand for the others. Locks nothing.
WITH RECURSIVE place AS (
    SELECT s.shard, f.lane, f.topic_id
    FROM generate_series(0, 15) s (shard)
    CROSS JOIN LATERAL (
        SELECT coalesce(repair, '') AS lane, topic_id FROM outbox.held_record
        WHERE shard = s.shard AND released_at IS NULL AND dropped_at IS NULL
        ORDER BY coalesce(repair, ''), topic_id LIMIT 1
    ) f
    UNION ALL
    SELECT p.shard, next.lane, next.topic_id
    FROM place p
    CROSS JOIN LATERAL (
        SELECT coalesce(repair, '') AS lane, topic_id FROM outbox.held_record
        WHERE shard = p.shard AND (coalesce(repair, ''), topic_id) > (p.lane, p.topic_id)
            AND released_at IS NULL AND dropped_at IS NULL
        ORDER BY coalesce(repair, ''), topic_id LIMIT 1
    ) next
), scope AS MATERIALIZED (
    SELECT place.*, coalesce(p.position, 0) AS xid, coalesce(p.position_n, 0) AS n,
        least(%(most)s::int8, greatest(%(most)s::int8 / 50, 8 * %(most)s::int8 / count(*) OVER ())) AS most
    FROM place LEFT JOIN outbox.progress p ON p.name = 'relay:' || place.shard
), first AS MATERIALIZED (
    SELECT s.shard, s.lane, s.topic_id, h.half_id, count(*) OVER scope > s.most AS more,
        row_number() OVER (scope ORDER BY h.xid, h.n) <= greatest(1, s.most / 10) AS oldest
    FROM scope s
    CROSS JOIN LATERAL (
        SELECT half_id, xid, n FROM outbox.held_record
        WHERE shard = s.shard AND coalesce(repair, '') = s.lane AND topic_id = s.topic_id AND (xid, n) <= (s.xid, s.n)
            AND released_at IS NULL AND dropped_at IS NULL
        ORDER BY xid, n LIMIT s.most + 1
    ) h
    WINDOW scope AS (PARTITION BY s.shard, s.lane, s.topic_id)
), long AS MATERIALIZED (
    SELECT s.* FROM scope s JOIN (SELECT DISTINCT shard, lane, topic_id FROM first WHERE more) f
        USING (shard, lane, topic_id)
), sample AS MATERIALIZED (
    SELECT least(1, %(most)s::float8 / 4 * current_setting('block_size')::int8
        / greatest(1, pg_relation_size('outbox.held_record'))) AS share
    WHERE EXISTS (SELECT FROM long)
), page AS MATERIALIZED (
    SELECT h.* FROM sample
    CROSS JOIN LATERAL (
        SELECT shard, coalesce(repair, '') AS lane, topic_id, xid, n, half_id
        FROM outbox.held_record TABLESAMPLE SYSTEM (100 * sample.share) REPEATABLE (0)
        WHERE released_at IS NULL AND dropped_at IS NULL
    ) h
), counted AS MATERIALIZED (
    SELECT l.shard, l.lane, l.topic_id, l.xid, l.n, least(1, l.most::float8 / count(*)) AS part
    FROM page JOIN long l USING (shard, lane, topic_id)
    WHERE (page.xid, page.n) <= (l.xid, l.n)
    GROUP BY l.shard, l.lane, l.topic_id, l.xid, l.n, l.most
), held AS (
    SELECT half_id, max(stands_for) AS stands_for
    FROM (
        SELECT f.half_id, CASE WHEN c.part IS NULL THEN 1.0::float8 ELSE 0 END AS stands_for
        FROM first f LEFT JOIN counted c USING (shard, lane, topic_id)
        WHERE f.oldest OR c.part IS NULL
        UNION ALL
        SELECT page.half_id, 1 / (c.part * sample.share)
        FROM page JOIN counted c USING (shard, lane, topic_id) CROSS JOIN sample
        WHERE (page.xid, page.n) <= (c.xid, c.n) AND (hashint8(page.half_id) & 65535) < 65536 * c.part
    ) h
    GROUP BY half_id
)
SELECT 'HELD' AS state, g.name AS producer_group, t.name AS topic,
    greatest(count(*), round(sum(held.stands_for)))::int8 AS messages,
    extract(epoch FROM clock_timestamp() - min(h.prepared_at))::float8 AS oldest_age_seconds,
    g.check_interval_seconds
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
-- Counts, by group, messages that producers' own transactions have published and that are not admitted yet. Reads the
-- first ones by key. Of a longer backlog some pages of the table are read, and each row in them stands for others.
WITH first AS MATERIALIZED (
    SELECT *, count(*) OVER () > 2 * %(most)s::int8 AS more
    FROM (
        SELECT producer_group_id, topic_id, published_at FROM outbox.plain_message
        ORDER BY half_id LIMIT 2 * %(most)s::int8 + 1
    ) oldest
), sample AS MATERIALIZED (
    SELECT least(1, %(most)s::float8 / 4 * current_setting('block_size')::int8
        / greatest(1, pg_relation_size('outbox.plain_message'))) AS share
    WHERE EXISTS (SELECT FROM first WHERE more)
), page AS MATERIALIZED (
    SELECT 1 / sample.share AS stands_for, m.* FROM sample
    CROSS JOIN LATERAL (
        SELECT producer_group_id, topic_id, published_at
        FROM outbox.plain_message TABLESAMPLE SYSTEM (100 * sample.share) REPEATABLE (0)
    ) m
), waiting AS (
    SELECT producer_group_id, topic_id, published_at, true AS first, 0.0::float8 AS stands_for FROM first
    UNION ALL
    SELECT producer_group_id, topic_id, published_at, false, stands_for FROM page
)
SELECT 'PLAIN' AS state, g.name AS producer_group, t.name AS topic,
    greatest(count(*) FILTER (WHERE w.first), round(sum(w.stands_for)))::int8 AS messages,
    extract(epoch FROM clock_timestamp() - min(w.published_at))::float8 AS oldest_age_seconds,
    g.check_interval_seconds
FROM waiting w
JOIN outbox.producer_group g ON g.id = w.producer_group_id
JOIN outbox.topic t ON t.id = w.topic_id
GROUP BY g.name, t.name, g.check_interval_seconds
