-- name: lock_name
-- Serializes the changes of a group by its name, also while the row does not exist yet. Waits for an advisory lock.
SELECT pg_advisory_xact_lock(hashtext('outbox.producer_group'), hashtext(%(name)s))

-- name: page
-- Reads registered groups by name, after the last one of the previous page; if asked, only some names, or only those that
-- are not asked: paused, or with a breaker that is not closed. With their secrets, and the database's time.
SELECT g.*, clock_timestamp() AS now, b.probe_at AS next_trial_at,
    CASE WHEN b.probe_at IS NULL THEN 'closed' WHEN b.probe_at > clock_timestamp() THEN 'open' ELSE 'half-open' END AS breaker
FROM outbox.producer_group g
LEFT JOIN outbox.check_breaker b ON b.producer_group_id = g.id
WHERE deleted_at IS NULL AND name > %(after)s AND (%(names)s::text[] IS NULL OR name = ANY (%(names)s::text[]))
    AND (NOT %(unasked)s::bool OR paused OR b.probe_at IS NOT NULL)
ORDER BY name
LIMIT %(limit)s

-- name: health
-- Counts the due checks among the first rows of each delay class of a group, and reads the times of its secrets. Locks
-- nothing.
SELECT (
    SELECT count(*) FILTER (WHERE head.due_at <= clock_timestamp())
    FROM outbox.check_class c
    CROSS JOIN LATERAL (
        SELECT due_at FROM outbox.check_queue
        WHERE producer_group_id = c.producer_group_id AND delay_seconds = c.delay_seconds AND id > c.position
        ORDER BY id
        LIMIT %(due)s
    ) head
    WHERE c.producer_group_id = g.id) AS due, g.secret_changed_at,
    (SELECT max(each.at) FROM unnest(g.previous_expire_at) AS each (at)
        WHERE each.at > clock_timestamp()) AS previous_secret_expires_at
FROM outbox.producer_group g
WHERE g.name = %(name)s AND g.deleted_at IS NULL

-- name: put
-- Registers a group, or replaces the settings of the group of this name. The pause and the secrets of a stored group are
-- unchanged.
INSERT INTO outbox.producer_group AS stored (
    name, secret, check_url, check_interval_seconds, check_max, check_timeout_seconds, transaction_timeout_seconds,
    on_check_max, backoff, max_inflight, batch_check, check_payload, topics, max_age_seconds)
VALUES (
    %(name)s, %(secret)s, %(check_url)s, %(check_interval_seconds)s, %(check_max)s, %(check_timeout_seconds)s,
    %(transaction_timeout_seconds)s, %(on_check_max)s, %(backoff)s, %(max_inflight)s, %(batch_check)s,
    %(check_payload)s, %(topics)s, %(max_age_seconds)s)
ON CONFLICT (name) DO UPDATE SET version = stored.version + 1, updated_at = clock_timestamp(), (
    check_url, check_interval_seconds, check_max, check_timeout_seconds, transaction_timeout_seconds, on_check_max,
    backoff, max_inflight, batch_check, check_payload, topics, max_age_seconds) = (
    excluded.check_url, excluded.check_interval_seconds, excluded.check_max, excluded.check_timeout_seconds,
    excluded.transaction_timeout_seconds, excluded.on_check_max, excluded.backoff, excluded.max_inflight,
    excluded.batch_check, excluded.check_payload, excluded.topics, excluded.max_age_seconds)

-- name: register_again
-- Registers a group that was deleted once more, with a new secret: its messages still have its id.
UPDATE outbox.producer_group
SET deleted_at = NULL, secret = %(secret)s, secret_changed_at = clock_timestamp(), previous_secrets = '{}',
    previous_expire_at = '{}', paused = false, pause_reason = NULL, paused_at = NULL, paused_by = NULL, created_at = clock_timestamp()
WHERE name = %(name)s AND deleted_at IS NOT NULL

-- name: in_use
-- Returns whether a group has undecided messages (not yet swept, queued, or parked) or committed ones that no relay has
-- passed yet, that are held, or that wait in SQL mode. Reads only after the cursors, each half and op by key, never
-- history: OFFSET 0 and the scalar subqueries keep the planner from joining whole tables.
SELECT EXISTS (
    SELECT FROM (
        SELECT half_id FROM outbox.half_message
        WHERE half_id > coalesce((SELECT position FROM outbox.progress WHERE name = 'sweep'), 0)
            AND producer_group_id = %(group)s
        UNION ALL
        SELECT half_id FROM outbox.check_queue WHERE producer_group_id = %(group)s
        UNION ALL
        SELECT half_id FROM outbox.parked_message WHERE producer_group_id = %(group)s
    ) waiting
    WHERE (SELECT decision FROM outbox.op_message WHERE half_id = waiting.half_id) IS NULL
) OR EXISTS (
    SELECT FROM (
        SELECT half_id FROM outbox.unpassed_commit
        UNION ALL
        SELECT half_id FROM outbox.open_held
    ) unpublished
    WHERE (SELECT producer_group_id FROM outbox.half_message WHERE half_id = unpublished.half_id) = %(group)s
) OR EXISTS (
    SELECT FROM outbox.plain_message WHERE producer_group_id = %(group)s
)

-- name: wait_for_flushes
-- Waits for the flushes that store messages of this group and stops new ones (outbox.begin_flush), until this
-- transaction ends. It has no xid yet.
SELECT pg_advisory_xact_lock(hashtext('outbox.begin_flush'), %(group)s::int4 & 63)

-- name: delete
-- Marks a group as deleted; its id and name are kept for its messages.
UPDATE outbox.producer_group
SET deleted_at = clock_timestamp(), version = version + 1, updated_at = clock_timestamp()
WHERE name = %(name)s

-- name: pause
-- Stops or resumes the checks of a group; prepare, end and publishing do not read this.
UPDATE outbox.producer_group
SET paused = %(paused)s, pause_reason = %(reason)s, paused_by = %(by)s,
    paused_at = CASE WHEN %(paused)s THEN clock_timestamp() END, version = version + 1, updated_at = clock_timestamp()
WHERE name = %(name)s AND deleted_at IS NULL

-- name: close_breaker
-- Closes a group's breaker, so that its checks start at once: the change or the resume may have fixed the cause. So
-- the time for which its checks have failed starts again.
WITH closed AS (DELETE FROM outbox.check_breaker WHERE producer_group_id = %(group)s)
DELETE FROM outbox.progress WHERE name = 'failing:' || %(group)s::int4

-- name: rotate_secret
-- Stores a new secret; the one that it replaces also signs until the overlap ends, and those that earlier rotations
-- replaced until theirs end. Without an overlap only the new one signs.
UPDATE outbox.producer_group
SET secret = %(secret)s, secret_changed_at = clock_timestamp(),
    (previous_secrets, previous_expire_at) = (
        SELECT coalesce(array_agg(secret ORDER BY place), '{}'), coalesce(array_agg(expires_at ORDER BY place), '{}')
        FROM (
            SELECT * FROM unnest(
                secret || previous_secrets, clock_timestamp() + %(overlap)s * interval '1 second' || previous_expire_at
            ) WITH ORDINALITY AS replaced (secret, expires_at, place)
            WHERE %(overlap)s > 0 AND expires_at > clock_timestamp()
            ORDER BY place
            LIMIT %(most)s
        ) kept),
    version = version + 1, updated_at = clock_timestamp()
WHERE name = %(name)s AND deleted_at IS NULL
RETURNING secret_changed_at + %(overlap)s * interval '1 second' AS previous_expires_at
