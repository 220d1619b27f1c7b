-- name: due_groups
-- Reads the head of every delay class: which groups have waiting halves, and how long the oldest is overdue. One
-- index probe per class; locks nothing. A group that is paused or deleted rests: nobody asks it. A row is due at most its
-- delay after it was written. One that is due later was written before the clock was set back: it counts as due now.
SELECT c.producer_group_id, g.name AS producer_group, g.paused OR g.deleted_at IS NOT NULL AS rests,
    max(CASE WHEN head.due_at > clock_timestamp() + make_interval(secs => c.delay_seconds + 1) THEN 0
        ELSE extract(epoch FROM clock_timestamp() - head.due_at) END)::float8 AS overdue_seconds,
    CASE WHEN b.probe_at IS NULL THEN 'closed'
         WHEN b.probe_at > clock_timestamp() AND b.probe_at <= clock_timestamp() + make_interval(secs => b.wait_seconds)
         THEN 'open' ELSE 'half-open' END AS breaker
FROM outbox.check_class c
JOIN outbox.producer_group g ON g.id = c.producer_group_id
LEFT JOIN outbox.check_breaker b ON b.producer_group_id = c.producer_group_id
CROSS JOIN LATERAL (
    SELECT q.due_at FROM outbox.check_queue q
    WHERE q.producer_group_id = c.producer_group_id AND q.delay_seconds = c.delay_seconds
        AND q.id > c.position AND q.id < (SELECT outbox.watermark() << 15)
    ORDER BY q.id
    LIMIT 1
) head
GROUP BY c.producer_group_id, g.name, rests, b.probe_at, b.wait_seconds

-- name: note_clock
-- Notes PostgreSQL's time, and a step of its clock since the last note.
SELECT outbox.note_clock()

-- name: aged_groups
-- Reads which groups, resting ones included, have a row whose half has reached the max age, as "aged_rows" does. One or
-- two index probes per group; locks nothing.
SELECT g.id, g.name
FROM (
    SELECT each.max_age_seconds, doubt.stepped_at, now() - make_interval(secs => each.max_age_seconds + doubt.skipped_seconds) AS since
    FROM (SELECT DISTINCT max_age_seconds FROM outbox.producer_group) each
    CROSS JOIN LATERAL outbox.clock_doubt(each.max_age_seconds) doubt
) bound
JOIN outbox.producer_group g USING (max_age_seconds)
CROSS JOIN LATERAL (
    (SELECT 1 FROM outbox.check_queue WHERE producer_group_id = g.id AND age_from <= bound.since ORDER BY age_from LIMIT 1)
    UNION ALL
    (SELECT 1 FROM outbox.check_queue
     WHERE producer_group_id = g.id AND age_from > now() + interval '2 minutes' AND bound.stepped_at <= bound.since
     ORDER BY age_from LIMIT 1)
    LIMIT 1
) aged

-- name: group
-- Reads the present settings of a group, with the secrets that sign at this moment, its breaker, whether it rests
-- (paused or deleted), the database's time, how far its clock is to be trusted, and when its server started.
SELECT id, name, check_url, check_interval_seconds, check_max, check_timeout_seconds,
    transaction_timeout_seconds, on_check_max, backoff, max_inflight, batch_check, check_payload, topics,
    max_age_seconds, paused, pause_reason, version, created_at, updated_at, secret,
    array_remove(ARRAY[CASE WHEN previous_expires_at > clock_timestamp() THEN previous_secret END], NULL) || ARRAY(
        SELECT older.secret FROM unnest(older_secrets, older_expire_at) WITH ORDINALITY AS older (secret, expires_at, place)
        WHERE older.expires_at > clock_timestamp() ORDER BY older.place) AS previous_secrets,
    paused OR deleted_at IS NOT NULL AS rests, b.wait_seconds, b.probe_at, clock_timestamp() AS now,
    pg_postmaster_start_time() AS server_started_at, doubt.skipped_seconds, doubt.stepped_at
FROM outbox.producer_group
LEFT JOIN outbox.check_breaker b ON b.producer_group_id = id
CROSS JOIN LATERAL outbox.clock_doubt(max_age_seconds) doubt
WHERE id = %(group)s

-- name: due_rows
-- Reads the due rows of a group: per delay class in id order, after the class's cursor, below the watermark (no
-- row with a lower id can appear any more), up to the first that is not due. A row that was written before the clock was
-- set back (see "due_groups") is read too: it waits once more for its delay, and keeps no other waiting.
SELECT c.delay_seconds, c.position, q.id, q.half_id, q.round, q.check_count, q.only_unknown, q.age_from, q.due_at
FROM outbox.check_class c
CROSS JOIN LATERAL (
    SELECT head.*, bool_and(head.due_at <= %(now)s
        OR head.due_at - make_interval(secs => head.delay_seconds + 1) > %(now)s) OVER (ORDER BY head.id) AS due
    FROM (
        SELECT * FROM outbox.check_queue
        WHERE producer_group_id = c.producer_group_id AND delay_seconds = c.delay_seconds
            AND id > c.position AND id < (SELECT outbox.watermark() << 15)
        ORDER BY id
        LIMIT %(limit)s
    ) head
) q
WHERE c.producer_group_id = %(group)s AND q.due
ORDER BY c.delay_seconds, q.id

-- name: aged_rows
-- Reads the rows of a group whose halves have reached the max age, oldest first, wherever they wait. What the clock may
-- have skipped does not count. A later time than the present is from before the clock's last step at the latest. A row
-- that a cursor has passed is void: a checker of an earlier version has left it. The rows are found first, by the index
-- on ages alone; in one join with the classes a planner without statistics reads the whole queue of the group.
SELECT c.delay_seconds, c.position, q.id, q.half_id, q.round, q.check_count, q.only_unknown, q.age_from, q.due_at,
    q.id <= c.position AS passed
FROM (
    (SELECT * FROM outbox.check_queue
     WHERE producer_group_id = %(group)s AND age_from <= %(now)s - make_interval(secs => %(max_age)s)
     ORDER BY age_from
     LIMIT %(limit)s)
    UNION ALL
    (SELECT * FROM outbox.check_queue
     WHERE producer_group_id = %(group)s AND age_from > %(now)s + interval '2 minutes'
         AND %(stepped_at)s::timestamptz <= %(now)s - make_interval(secs => %(max_age)s)
     ORDER BY age_from
     LIMIT %(limit)s)
) q
JOIN outbox.check_class c USING (producer_group_id, delay_seconds)
ORDER BY q.age_from
LIMIT %(limit)s

-- name: claimed_halves
-- Reads, by key, the halves of due rows, whether they have an op, their current round and whether they are parked.
-- The bounds prune leaves; LATERAL … OFFSET 0 keeps every look-up by key.
SELECT asked.half_id, h.nonce, h.prepared_at, h.content_digest, h.producer_group_id, g.name AS producer_group,
    h.topic_id, t.name AS topic, h."partition", h.check_immunity_seconds, h.transaction_id, h.key,
    CASE WHEN %(with_value)s THEN h.value END AS value, octet_length(h.value) AS value_bytes, h.headers, h.content_type,
    h.traceparent, h.tags, h.key_id,
    h.nonce IS NOT NULL AS stored,
    o.decided IS NOT NULL AS decided,
    coalesce(r.round, 1) AS standing_round,
    p.half_id IS NOT NULL AND p.resumed_at IS NULL AS parked
FROM unnest(%(half_ids)s::int8[]) AS asked (half_id)
LEFT JOIN LATERAL (
    SELECT * FROM outbox.half_message
    WHERE half_id = asked.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
) h ON true
LEFT JOIN LATERAL (
    SELECT true AS decided FROM outbox.op_message
    WHERE half_id = asked.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
) o ON true
LEFT JOIN outbox.recheck r ON r.half_id = asked.half_id
LEFT JOIN outbox.parked_message p ON p.half_id = asked.half_id
LEFT JOIN outbox.producer_group g ON g.id = h.producer_group_id
LEFT JOIN outbox.topic t ON t.id = h.topic_id
