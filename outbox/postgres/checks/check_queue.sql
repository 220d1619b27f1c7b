-- name: due_groups
-- Reads the head of every delay class: which groups have waiting halves, how long the oldest is overdue, and whether a due
-- one is at its max age. One index probe per class; locks nothing. A group that is paused or deleted rests.
SELECT c.producer_group_id, g.name AS producer_group, g.paused OR g.deleted_at IS NOT NULL AS rests,
    extract(epoch FROM clock_timestamp() - min(head.due_at))::float8 AS overdue_seconds,
    bool_or(greatest(head.due_at, head.age_from + make_interval(secs => g.max_age_seconds)) <= clock_timestamp()) AS aged,
    CASE WHEN b.probe_at IS NULL THEN 'closed' WHEN b.probe_at > clock_timestamp() THEN 'open' ELSE 'half-open' END AS breaker
FROM outbox.check_class c
JOIN outbox.producer_group g ON g.id = c.producer_group_id
LEFT JOIN outbox.check_breaker b ON b.producer_group_id = c.producer_group_id
CROSS JOIN LATERAL (
    SELECT q.due_at, q.age_from FROM outbox.check_queue q
    WHERE q.producer_group_id = c.producer_group_id AND q.delay_seconds = c.delay_seconds
        AND q.id > c.position AND q.id < (SELECT outbox.watermark() << 15)
    ORDER BY q.id
    LIMIT 1
) head
GROUP BY c.producer_group_id, g.name, rests, b.probe_at

-- name: group
-- Reads the present settings of a group, with its secrets, its breaker, whether it rests (paused or deleted), the
-- database's time, and when its server started.
SELECT g.*, paused OR deleted_at IS NOT NULL AS rests, b.wait_seconds, b.probe_at, clock_timestamp() AS now,
    pg_postmaster_start_time() AS server_started_at
FROM outbox.producer_group g
LEFT JOIN outbox.check_breaker b ON b.producer_group_id = g.id
WHERE g.id = %(group)s

-- name: due_rows
-- Reads the due rows of a group: per delay class in id order, after the class's cursor, below the watermark (no
-- row with a lower id can appear any more), up to the first that is not due. Of a group that cannot be asked, up to the
-- first that is not at its max age. The classes are merged by due time; inside a class a row comes after lower ids.
SELECT c.delay_seconds, c.position, q.id AS look_id, q.half_id, q.round, q.check_count, q.only_unknown, q.age_from
FROM outbox.check_class c
CROSS JOIN LATERAL (
    SELECT head.*, bool_and(head.due_at <= %(now)s
        AND (%(asks)s OR head.age_from <= %(now)s - make_interval(secs => %(max_age)s))) OVER (ORDER BY head.id) AS due,
        max(head.due_at) OVER (ORDER BY head.id) AS due_by
    FROM (
        SELECT * FROM outbox.check_queue
        WHERE producer_group_id = c.producer_group_id AND delay_seconds = c.delay_seconds
            AND id > c.position AND id < (SELECT outbox.watermark() << 15)
        ORDER BY id
        LIMIT %(limit)s
    ) head
) q
WHERE c.producer_group_id = %(group)s AND q.due
ORDER BY q.due_by, c.delay_seconds, q.id
LIMIT %(limit)s

-- name: claimed_halves
-- Reads, by key, the halves of due rows, and why a row is skipped (no half, an op, a newer round). The bounds prune
-- leaves; LATERAL … OFFSET 0 keeps every look-up by key.
SELECT asked.look_id, asked.half_id, h.nonce, h.prepared_at, h.content_digest, h.producer_group_id, g.name AS producer_group,
    h.topic_id, t.name AS topic, h."partition", h.check_immunity_seconds, h.transaction_id, h.key,
    CASE WHEN %(with_value)s THEN h.value END AS value, h.headers, h.content_type,
    h.traceparent, h.tags, h.key_id, h.followers,
    CASE WHEN h.nonce IS NULL THEN 'unknown' WHEN o.decided THEN 'decided' WHEN asked.round < r.round THEN 'void' END AS drop
FROM unnest(%(look_ids)s::int8[], %(half_ids)s::int8[], %(rounds)s::int4[]) AS asked (look_id, half_id, round)
LEFT JOIN LATERAL (
    SELECT * FROM outbox.half_message
    WHERE half_id = asked.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
) h ON true
LEFT JOIN LATERAL (
    SELECT true AS decided FROM outbox.op_message
    WHERE half_id = asked.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
) o ON true
LEFT JOIN outbox.recheck r ON r.half_id = asked.half_id
LEFT JOIN outbox.producer_group g ON g.id = h.producer_group_id
LEFT JOIN outbox.topic t ON t.id = h.topic_id
