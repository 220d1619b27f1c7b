-- name: server_started_at
-- Returns when the server started. A standby that was promoted started at another time than the primary.
SELECT pg_postmaster_start_time()

-- name: begin
-- Stores an action; nothing is done yet.
INSERT INTO outbox.bulk_action (action, decision, groups, operator, reason, key_id, half_ids, rate, starts_at)
VALUES (%(action)s, %(decision)s, %(groups)s, %(operator)s, %(reason)s, %(key_id)s, %(half_ids)s, %(rate)s,
    clock_timestamp() + make_interval(secs => %(delay_seconds)s))
RETURNING id

-- name: read
-- Reads one action by key, unless a caller of other groups ordered it.
SELECT id, greatest(cardinality(half_ids), done + failed) AS matched, done, failed, failures, finished_at IS NOT NULL AS finished,
    cancelled_at IS NOT NULL AS cancelled,
    CASE WHEN finished_at IS NULL
        THEN greatest(extract(epoch FROM starts_at - clock_timestamp()), 0)::float8 ELSE 0 END AS starts_in_seconds
FROM outbox.bulk_action
WHERE id = %(id)s AND (%(groups)s::int4[] IS NULL OR groups <@ %(groups)s::int4[])

-- name: cancel
-- Ends an action that is not finished, by key, unless a caller of other groups ordered it; waits for a chunk that is
-- being processed.
UPDATE outbox.bulk_action SET cancelled_at = clock_timestamp(), finished_at = clock_timestamp()
WHERE id = %(id)s AND finished_at IS NULL AND (%(groups)s::int4[] IS NULL OR groups <@ %(groups)s::int4[])
RETURNING true

-- name: resume
-- Lets a cancelled action go on with what is left of it, by key, unless a caller of other groups ordered it.
UPDATE outbox.bulk_action SET cancelled_at = NULL, finished_at = NULL
WHERE id = %(id)s AND cancelled_at IS NOT NULL AND done + failed < cardinality(half_ids)
    AND (%(groups)s::int4[] IS NULL OR groups <@ %(groups)s::int4[])
RETURNING true

-- name: claim
-- Locks an unfinished action that may begin and that no other process has locked: the oldest one of whoever was served
-- least recently, by the list of the tenants that were. A tenant is all keys of the same groups with those that descend
-- from them, or a key of all groups. One that was stored before the clock was set back waits for its delay once more; one
-- that would wait for longer than an hour may begin. Reads no list of messages.
WITH stepped AS (
    UPDATE outbox.bulk_action SET created_at = clock_timestamp(), starts_at = clock_timestamp() + (starts_at - created_at)
    WHERE finished_at IS NULL AND starts_at > clock_timestamp() AND created_at > clock_timestamp() + interval '1 second'
)
SELECT id, coalesce(tenant, groups::text, '') AS owner
FROM outbox.bulk_action
LEFT JOIN LATERAL (
    SELECT CASE WHEN '*' = ANY (root.producer_groups) THEN root.key_id
        ELSE (SELECT array_agg(name ORDER BY name)::text FROM unnest(root.producer_groups) name) END AS tenant
    FROM outbox.api_key own JOIN outbox.api_key root ON root.key_id = coalesce(own.root_key_id, own.key_id)
    WHERE own.key_id = bulk_action.key_id
) key ON true
WHERE finished_at IS NULL
    AND (starts_at IS NULL OR starts_at <= clock_timestamp() OR starts_at > clock_timestamp() + interval '2 hours')
    AND (starts_at > clock_timestamp() AND created_at > clock_timestamp() + interval '1 second') IS NOT TRUE
ORDER BY array_position(%(served)s::text[], coalesce(tenant, groups::text, '')) NULLS FIRST, created_at
LIMIT 1
FOR UPDATE OF bulk_action SKIP LOCKED

-- name: chunk
-- Reads the next chunk of a locked action, by key, and the time that its rate counts from: its messages so far have had
-- their turns by now. So what waited, for the delay, a resume or an API, is not due all at once.
UPDATE outbox.bulk_action
SET starts_at = CASE WHEN rate IS NULL THEN starts_at ELSE greatest(least(greatest(created_at, starts_at), clock_timestamp()),
    clock_timestamp() - make_interval(secs => (done + failed) / rate::float8)) END
WHERE id = %(id)s
RETURNING id, action, decision, groups, operator, reason, key_id, rate, cardinality(half_ids) AS matched,
    done + failed AS position, least(starts_at, clock_timestamp()) AS paced_from,
    jsonb_array_length(failures) AS named, half_ids[done + failed + 1 : done + failed + %(chunk)s] AS half_ids

-- name: advance
-- Writes the result of a chunk, in the transaction of its effects; only the first failures are kept.
UPDATE outbox.bulk_action
SET done = done + %(done)s, failed = failed + %(failed)s, failures = failures || %(failures)s::jsonb,
    finished_at = CASE WHEN %(last)s THEN clock_timestamp() END
WHERE id = %(id)s
