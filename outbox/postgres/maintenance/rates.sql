-- name: hour
-- Returns when the last hour and the last day began.
SELECT now - interval '1 hour' AS since, now - interval '1 day' AS day FROM clock_timestamp() AS now

-- name: slices
-- The beginning of ``prepared`` and ``outcomes``: bisects the key of the halves for the first xid since a time, one
-- look-up a step, and cuts the xids since then into slices of equal width. Locks nothing.
WITH RECURSIVE bounds (low, high) AS (
    SELECT (SELECT half_id >> 15 FROM outbox.half_message ORDER BY half_id LIMIT 1),
        (SELECT (half_id >> 15) + 1 FROM outbox.half_message ORDER BY half_id DESC LIMIT 1)
), search (low, high) AS (
    SELECT low, high FROM bounds
    UNION ALL
    SELECT CASE WHEN late THEN low ELSE middle + 1 END, CASE WHEN late THEN middle ELSE high END
    FROM (
        SELECT s.low, s.high, m.middle, (
            SELECT prepared_at >= %(since)s FROM outbox.half_message
            WHERE half_id >= m.middle << 15 ORDER BY half_id LIMIT 1) AS late
        FROM search s
        CROSS JOIN LATERAL (SELECT (s.low + s.high) / 2 AS middle) m
        WHERE s.low < s.high
    ) step
), slice AS (
    SELECT s.low + (b.high - s.low) * n / %(slices)s::int8 AS low,
        s.low + (b.high - s.low) * (n + 1) / %(slices)s::int8 AS high
    FROM search s CROSS JOIN bounds b CROSS JOIN generate_series(0, %(slices)s::int8 - 1) n
    WHERE s.low >= s.high
)

-- name: prepared
-- Samples the halves since a time: reads the first ones of each slice by key, up to a limit, and the last one. Where the
-- sample ends inside of a flush, the place of the flush's last half says how many it has. Locks nothing.
{slices}
SELECT s.low, s.high, max(f.xid) AS last, bool_or(f.cut_off) AS cut_off,
    array_agg(floor(extract(epoch FROM f.at - %(since)s) / 60)::int4 ORDER BY f.xid) AS minutes,
    array_agg(f.messages::int8 ORDER BY f.xid) AS messages,
    floor(extract(epoch FROM (
        SELECT prepared_at FROM outbox.half_message
        WHERE half_id >= s.low << 15 AND half_id < s.high << 15 ORDER BY half_id DESC LIMIT 1
    ) - %(since)s) / 60)::int4 AS last_minute
FROM slice s
CROSS JOIN LATERAL (
    SELECT flush.xid, flush.at, flush.cut_off, CASE WHEN flush.cut_off AND flush.xid = flush.last THEN (
        SELECT (half_id >> 4 & 2047) + 1 FROM outbox.half_message
        WHERE half_id >= flush.xid << 15 AND half_id < (flush.xid + 1) << 15 ORDER BY half_id DESC LIMIT 1
    ) ELSE flush.messages END AS messages
    FROM (
        SELECT xid, min(at) AS at, count(*) AS messages, max(xid) OVER () AS last,
            sum(count(*)) OVER () = %(rows)s::int8 AS cut_off
        FROM (
            SELECT half_id >> 15 AS xid, prepared_at AS at FROM outbox.half_message
            WHERE half_id >= s.low << 15 AND half_id < s.high << 15
            ORDER BY half_id LIMIT %(rows)s
        ) sample
        GROUP BY xid
    ) flush
) f
GROUP BY s.low, s.high

-- name: entries
-- Samples a log of each shard since a time, as ``prepared`` does the halves. {log} has an entry for each flush or batch:
-- its key {xid}, its time {at}, and {of}, an array with one element for each message. Locks nothing.
WITH RECURSIVE bounds (shard, low, high) AS (
    SELECT s.shard, (SELECT {xid} FROM outbox.{log} WHERE shard = s.shard ORDER BY {xid} LIMIT 1),
        (SELECT {xid} + 1 FROM outbox.{log} WHERE shard = s.shard ORDER BY {xid} DESC LIMIT 1)
    FROM generate_series(0, 15) AS s (shard)
), search (shard, low, high) AS (
    SELECT shard, low, high FROM bounds
    UNION ALL
    SELECT shard, CASE WHEN late THEN low ELSE middle + 1 END, CASE WHEN late THEN middle ELSE high END
    FROM (
        SELECT s.shard, s.low, s.high, m.middle, (
            SELECT {at} >= %(since)s FROM outbox.{log}
            WHERE shard = s.shard AND {xid} >= m.middle ORDER BY {xid} LIMIT 1) AS late
        FROM search s
        CROSS JOIN LATERAL (SELECT (s.low + s.high) / 2 AS middle) m
        WHERE s.low < s.high
    ) step
), slice AS (
    SELECT s.shard, s.low + (b.high - s.low) * n / %(slices)s::int8 AS low,
        s.low + (b.high - s.low) * (n + 1) / %(slices)s::int8 AS high
    FROM search s JOIN bounds b USING (shard) CROSS JOIN generate_series(0, %(slices)s::int8 - 1) n
    WHERE s.low >= s.high
)
SELECT s.low, s.high, max(f.xid) AS last, count(*) = %(flushes)s::int8 AS cut_off,
    array_agg(floor(extract(epoch FROM f.at - %(since)s) / 60)::int4 ORDER BY f.xid) AS minutes,
    array_agg(f.messages::int8 ORDER BY f.xid) AS messages,
    floor(extract(epoch FROM (
        SELECT {at} FROM outbox.{log}
        WHERE shard = s.shard AND {xid} >= s.low AND {xid} < s.high ORDER BY {xid} DESC LIMIT 1
    ) - %(since)s) / 60)::int4 AS last_minute
FROM slice s
CROSS JOIN LATERAL (
    SELECT {xid} AS xid, {at} AS at, cardinality({of}) AS messages FROM outbox.{log}
    WHERE shard = s.shard AND {xid} >= s.low AND {xid} < s.high ORDER BY {xid} LIMIT %(flushes)s
) f
GROUP BY s.shard, s.low, s.high

-- name: checked
-- Reads the newest checks by key, up to a limit, and counts those since a time by minute and outcome; of the oldest one
-- it reads, by key, when its half was prepared. Locks nothing.
WITH newest AS MATERIALIZED (
    SELECT half_id, asked_at, outcome FROM outbox.check_attempt ORDER BY half_id DESC, look_id DESC LIMIT %(checks)s
), looked AS (
    SELECT count(*) AS looked, min(half_id) AS last FROM newest
)
SELECT looked.looked, (SELECT prepared_at FROM outbox.half_message WHERE half_id = looked.last) AS back_to,
    made.minute, made.outcome, made.checks
FROM looked
LEFT JOIN (
    SELECT floor(extract(epoch FROM asked_at - %(since)s) / 60)::int4 AS minute, outcome, count(*)::int8 AS checks
    FROM newest WHERE asked_at >= %(since)s GROUP BY 1, 2
) made ON true

-- name: outcomes
-- Samples the checks of the halves since a time: reads the first ones of each slice by key, up to a limit, and counts
-- them by outcome. Where a sample ends, the last half of that flush, read by key, says how much of the flush it has; each
-- check then stands for those behind the sample too. Locks nothing.
{slices}
SELECT c.outcome, bool_or(c.cut_off) AS estimated,
    round(sum(CASE WHEN c.cut_off THEN c.checks * (s.high - s.low) / ((c.last >> 15) - s.low + coalesce(
        ((c.last >> 4 & 2047) + 1)::float8 / (
            SELECT (half_id >> 4 & 2047) + 1 FROM outbox.half_message
            WHERE half_id >= c.last >> 15 << 15 AND half_id < ((c.last >> 15) + 1) << 15 ORDER BY half_id DESC LIMIT 1
        ), 1.0)) ELSE c.checks END))::int8 AS checks
FROM slice s
CROSS JOIN LATERAL (
    SELECT outcome, count(*) AS checks, max(max(half_id)) OVER () AS last, sum(count(*)) OVER () = %(rows)s::int8 AS cut_off
    FROM (
        SELECT half_id, outcome FROM outbox.check_attempt
        WHERE half_id >= s.low << 15 AND half_id < s.high << 15
        ORDER BY half_id, look_id LIMIT %(rows)s
    ) sample
    GROUP BY outcome
) c
GROUP BY c.outcome
