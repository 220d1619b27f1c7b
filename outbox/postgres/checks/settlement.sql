-- name: move_cursors
-- Moves the cursors of a group's delay classes from where they were read, and locks them. Fewer rows than given
-- means that another checker has settled these rows, or that the server that was read is not this one: after a failover
-- that lost the last transactions, their ids are given once more, and rows of other halves would leave the queue.
UPDATE outbox.check_class c
SET position = moved.goal
FROM unnest(%(delays)s::int4[], %(positions)s::int8[], %(goals)s::int8[]) AS moved (delay, position, goal)
WHERE c.producer_group_id = %(group)s AND c.delay_seconds = moved.delay AND c.position = moved.position
    AND pg_postmaster_start_time() = coalesce(%(started_at)s::timestamptz, pg_postmaster_start_time())

-- name: remove
-- Deletes the rows that the cursors have passed, each by key: the queue keeps only what is open.
DELETE FROM outbox.check_queue q
USING unnest(%(delays)s::int4[], %(positions)s::int8[], %(goals)s::int8[]) AS passed (delay, position, goal)
WHERE q.producer_group_id = %(group)s AND q.delay_seconds = passed.delay AND q.id > passed.position AND q.id <= passed.goal

-- name: open_classes
-- Creates the delay classes that are missing. Sorted, so that two writers cannot deadlock.
INSERT INTO outbox.check_class (producer_group_id, delay_seconds)
SELECT DISTINCT g, d FROM unnest(%(groups)s::int4[], %(delays)s::int4[]) AS asked (g, d)
ORDER BY g, d
ON CONFLICT DO NOTHING

-- name: put_back
-- Appends one reference for each half that waits for a later check, due after its class's delay.
INSERT INTO outbox.check_queue (
    producer_group_id, delay_seconds, id, half_id, round, check_count, only_unknown, age_from, due_at)
SELECT %(group)s, delay_seconds, (flush.xid << 15) + row_number() OVER (), half_id, round, check_count, only_unknown,
    age_from, flush.at + delay_seconds * interval '1 second'
FROM jsonb_to_recordset(%(appended)s) AS back (
    delay_seconds int4, half_id int8, round int4, check_count int4, only_unknown bool, age_from timestamptz)
CROSS JOIN (SELECT outbox.current_xid() AS xid, clock_timestamp() AS at) flush

-- name: attempts
-- Appends the history of the checks that were made, in the leaf of each half. An answer counts as a spent check
-- only if its half is still PREPARED, neither decided nor parked meanwhile.
INSERT INTO outbox.check_attempt (
    half_id, look_id, round, attempt, asked_at, outcome, http_status, latency_ms, counted, applied, error)
SELECT made.half_id, look_id, round, attempt, asked_at, outcome, http_status, latency_ms,
    spent AND o.decided IS NULL AND p.half_id IS NULL, applied, error
FROM jsonb_to_recordset(%(made)s) AS made (
    half_id int8, look_id int8, round int4, attempt int4, asked_at timestamptz, outcome text, http_status int4,
    latency_ms int4, spent bool, applied bool, error text)
LEFT JOIN LATERAL (
    SELECT true AS decided FROM outbox.op_message
    WHERE spent AND half_id = made.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
) o ON true
LEFT JOIN outbox.parked_message p ON p.half_id = made.half_id AND p.resumed_at IS NULL

-- name: park
-- Parks halves undecided, unless they have an op or a newer round by now. A half that was resumed and is parked again
-- gets the new values; the earlier ones are kept for the history.
INSERT INTO outbox.parked_message AS p (half_id, producer_group_id, parked_at, parked_reason, check_count)
SELECT h.half_id, h.producer_group_id, clock_timestamp(), aside.reason, aside.check_count
FROM jsonb_to_recordset(%(parked)s) AS aside (half_id int8, round int4, reason text, check_count int4)
CROSS JOIN LATERAL (
    SELECT half_id, producer_group_id FROM outbox.half_message
    WHERE half_id = aside.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
) h
LEFT JOIN LATERAL (
    SELECT true AS decided FROM outbox.op_message
    WHERE half_id = aside.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
) o ON true
LEFT JOIN outbox.recheck r ON r.half_id = aside.half_id
WHERE o.decided IS NULL AND coalesce(r.round, 1) = aside.round
ON CONFLICT (half_id) DO UPDATE SET
    parked_at = excluded.parked_at, parked_reason = excluded.parked_reason,
    check_count = excluded.check_count, resumed_at = NULL,
    earlier_parkings = p.earlier_parkings || jsonb_build_object(
        'at', p.parked_at, 'reason', p.parked_reason, 'check_count', p.check_count)
RETURNING half_id

-- name: pause_group
-- Pauses a group's checks, unless the group was changed since it was read.
UPDATE outbox.producer_group
SET paused = true, pause_reason = %(reason)s, paused_at = clock_timestamp(), paused_by = 'checker', version = version + 1, updated_at = clock_timestamp()
WHERE id = %(group)s AND version = %(version)s AND NOT paused

-- name: open_breaker
-- Opens a group's breaker, or restarts the wait of an open one; the wait begins now. Does nothing if the group was
-- changed or resumed since it was read: its checks start at once then.
INSERT INTO outbox.check_breaker AS b (producer_group_id, wait_seconds, probe_at)
SELECT id, %(wait)s, clock_timestamp() + %(wait)s * interval '1 second'
FROM outbox.producer_group
WHERE id = %(group)s AND version = %(version)s
ON CONFLICT (producer_group_id) DO UPDATE SET wait_seconds = excluded.wait_seconds, probe_at = excluded.probe_at

-- name: close_breaker
-- Closes a group's breaker.
DELETE FROM outbox.check_breaker WHERE producer_group_id = %(group)s

-- name: fails
-- Notes since when all checks of a group have failed. Writes nothing if that is noted already, or if the group was
-- changed or resumed since it was read.
INSERT INTO outbox.progress (name, updated_at)
SELECT 'failing:' || id, clock_timestamp()
FROM outbox.producer_group
WHERE id = %(group)s AND version = %(version)s
ON CONFLICT (name) DO NOTHING

-- name: answers
-- Forgets, by key, that the checks of a group have failed. Writes nothing if that was not noted.
DELETE FROM outbox.progress WHERE name = 'failing:' || %(group)s::int4
