-- name: begin
-- Stores an action; nothing is done yet.
INSERT INTO outbox.bulk_action (action, decision, groups, operator, reason, key_id, half_ids, starts_at)
VALUES (%(action)s, %(decision)s, %(groups)s, %(operator)s, %(reason)s, %(key_id)s, %(half_ids)s,
    clock_timestamp() + make_interval(secs => %(delay_seconds)s))
RETURNING id

-- name: read
-- Reads one action by key, unless a caller of other groups ordered it.
SELECT id, cardinality(half_ids) AS matched, done, failed, failures,
    CASE WHEN cancelled_at IS NOT NULL THEN 'cancelled' WHEN finished_at IS NOT NULL THEN 'finished'
        WHEN waits > 0 THEN 'waiting' ELSE 'running' END AS status,
    CASE WHEN finished_at IS NULL THEN greatest(waits, 0) ELSE 0 END::float8 AS starts_in_seconds
FROM outbox.bulk_action
CROSS JOIN LATERAL (SELECT round(extract(epoch FROM starts_at - clock_timestamp()), 1) AS waits) AS start
WHERE id = %(id)s AND (%(groups)s::int4[] IS NULL OR groups <@ %(groups)s::int4[])

-- name: cancel
-- Ends an action that is not finished, by key, unless a caller of other groups ordered it; waits for a chunk that is
-- being processed.
UPDATE outbox.bulk_action SET cancelled_at = clock_timestamp(), finished_at = clock_timestamp()
WHERE id = %(id)s AND finished_at IS NULL AND (%(groups)s::int4[] IS NULL OR groups <@ %(groups)s::int4[])
RETURNING true

-- name: claim
-- Locks the unfinished action that may begin and has done least, and that no other process has locked; reads its next
-- chunk. So a small action does not wait for a large one.
SELECT id, action, decision, operator, reason, key_id, half_ids[done + failed + 1 : done + failed + %(chunk)s] AS half_ids
FROM outbox.bulk_action
WHERE finished_at IS NULL AND starts_at <= clock_timestamp()
ORDER BY done + failed, created_at
LIMIT 1
FOR UPDATE SKIP LOCKED

-- name: advance
-- Writes the result of a chunk, in the transaction of its effects; only the first 100 failures are kept.
UPDATE outbox.bulk_action
SET done = done + %(done)s, failed = failed + %(failed)s,
    failures = jsonb_path_query_array(failures || %(failures)s::jsonb, '$[0 to 99]'),
    finished_at = CASE WHEN done + failed + %(done)s + %(failed)s >= cardinality(half_ids) THEN clock_timestamp() END
WHERE id = %(id)s
