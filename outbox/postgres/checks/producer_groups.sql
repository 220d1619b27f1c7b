-- name: lock_name
-- Serializes the changes of a group by its name, also while the row does not exist yet.
SELECT pg_advisory_xact_lock(hashtext('outbox.producer_group'), hashtext(%(name)s))

-- name: page
-- Reads registered groups by name, after the last one of the previous page.
SELECT id, name, check_url, check_interval_seconds, check_max, check_timeout_seconds,
    transaction_timeout_seconds, on_check_max, backoff, max_inflight, batch_check, check_payload, topics,
    max_age_seconds, paused, pause_reason, version, created_at, updated_at,
    CASE WHEN b.probe_at IS NULL THEN 'closed' WHEN b.probe_at > clock_timestamp() THEN 'open'
         ELSE 'half-open' END AS breaker
FROM outbox.producer_group
LEFT JOIN outbox.check_breaker b ON b.producer_group_id = id
WHERE deleted_at IS NULL AND name > %(after)s AND (%(names)s::text[] IS NULL OR name = ANY (%(names)s::text[]))
ORDER BY name
LIMIT %(limit)s

-- name: get
-- Reads one registered group.
SELECT id, name, check_url, check_interval_seconds, check_max, check_timeout_seconds,
    transaction_timeout_seconds, on_check_max, backoff, max_inflight, batch_check, check_payload, topics,
    max_age_seconds, paused, pause_reason, version, created_at, updated_at,
    CASE WHEN b.probe_at IS NULL THEN 'closed' WHEN b.probe_at > clock_timestamp() THEN 'open'
         ELSE 'half-open' END AS breaker
FROM outbox.producer_group
LEFT JOIN outbox.check_breaker b ON b.producer_group_id = id
WHERE name = %(name)s AND deleted_at IS NULL

-- name: signing
-- Reads the secrets that sign a registered group's checks now, and the database's time.
SELECT secret, CASE WHEN previous_expires_at > clock_timestamp() THEN previous_secret END AS previous_secret,
    clock_timestamp() AS now
FROM outbox.producer_group
WHERE name = %(name)s AND deleted_at IS NULL

-- name: create
-- Registers a group, or registers a deleted one again: its messages still have its id.
INSERT INTO outbox.producer_group AS g (
    name, check_url, check_interval_seconds, check_max, check_timeout_seconds, transaction_timeout_seconds,
    on_check_max, backoff, max_inflight, batch_check, check_payload, topics, max_age_seconds, secret)
VALUES (
    %(name)s, %(check_url)s, %(check_interval_seconds)s, %(check_max)s, %(check_timeout_seconds)s,
    %(transaction_timeout_seconds)s, %(on_check_max)s, %(backoff)s, %(max_inflight)s, %(batch_check)s,
    %(check_payload)s, %(topics)s, %(max_age_seconds)s, %(secret)s)
ON CONFLICT (name) DO UPDATE SET
    check_url = excluded.check_url, check_interval_seconds = excluded.check_interval_seconds,
    check_max = excluded.check_max, check_timeout_seconds = excluded.check_timeout_seconds,
    transaction_timeout_seconds = excluded.transaction_timeout_seconds, on_check_max = excluded.on_check_max,
    backoff = excluded.backoff, max_inflight = excluded.max_inflight, batch_check = excluded.batch_check,
    check_payload = excluded.check_payload, topics = excluded.topics, max_age_seconds = excluded.max_age_seconds,
    secret = excluded.secret, previous_secret = NULL, previous_expires_at = NULL, paused = false,
    pause_reason = NULL, version = g.version + 1, created_at = clock_timestamp(), updated_at = clock_timestamp(),
    deleted_at = NULL

-- name: replace
-- Replaces a group's settings and raises the version; the pause and the secrets are unchanged.
UPDATE outbox.producer_group SET
    check_url = %(check_url)s, check_interval_seconds = %(check_interval_seconds)s, check_max = %(check_max)s,
    check_timeout_seconds = %(check_timeout_seconds)s,
    transaction_timeout_seconds = %(transaction_timeout_seconds)s, on_check_max = %(on_check_max)s,
    backoff = %(backoff)s, max_inflight = %(max_inflight)s, batch_check = %(batch_check)s,
    check_payload = %(check_payload)s, topics = %(topics)s, max_age_seconds = %(max_age_seconds)s,
    version = version + 1, updated_at = clock_timestamp()
WHERE name = %(name)s

-- name: in_use
-- Returns whether a group has undecided messages (not yet swept, queued, or parked) or committed ones that no
-- relay has passed yet. Reads only after the cursors, never history.
SELECT EXISTS (
    SELECT FROM outbox.half_message h
    WHERE h.half_id > coalesce((SELECT position FROM outbox.progress WHERE name = 'sweep'), 0)
        AND h.producer_group_id = %(group)s
        AND NOT EXISTS (SELECT FROM outbox.op_message o WHERE o.half_id = h.half_id)
) OR EXISTS (
    SELECT FROM outbox.check_queue q
    JOIN outbox.check_class c USING (producer_group_id, delay_seconds)
    LEFT JOIN outbox.recheck r ON r.half_id = q.half_id
    WHERE q.producer_group_id = %(group)s AND q.id > c.position AND q.round = coalesce(r.round, 1)
        AND NOT EXISTS (SELECT FROM outbox.op_message o WHERE o.half_id = q.half_id)
) OR EXISTS (
    SELECT FROM outbox.parked_message p
    WHERE p.producer_group_id = %(group)s
        AND NOT EXISTS (SELECT FROM outbox.op_message o WHERE o.half_id = p.half_id)
) OR EXISTS (
    SELECT FROM outbox.commit_log c
    LEFT JOIN outbox.progress p ON p.name = 'relay:' || c.shard
    CROSS JOIN LATERAL unnest(c.half_ids) WITH ORDINALITY AS committed (half_id, n)
    JOIN outbox.half_message h ON h.half_id = committed.half_id
    WHERE (c.xid, committed.n) > (coalesce(p.position, 0), coalesce(p.position_n, 0))
        AND h.producer_group_id = %(group)s
) OR EXISTS (
    SELECT FROM outbox.held_record r
    JOIN outbox.half_message h ON h.half_id = r.half_id
    WHERE r.released_at IS NULL AND r.dropped_at IS NULL AND h.producer_group_id = %(group)s
)

-- name: delete
-- Marks a group as deleted; its id and name are kept for its messages.
UPDATE outbox.producer_group
SET deleted_at = clock_timestamp(), version = version + 1, updated_at = clock_timestamp()
WHERE name = %(name)s

-- name: pause
-- Stops or resumes the checks of a group; prepare, end and publishing do not read this.
UPDATE outbox.producer_group
SET paused = %(paused)s, pause_reason = %(reason)s, version = version + 1, updated_at = clock_timestamp()
WHERE name = %(name)s AND deleted_at IS NULL

-- name: close_breaker
-- Closes a group's breaker, so that its checks start at once: the change or the resume may have fixed the cause.
DELETE FROM outbox.check_breaker WHERE producer_group_id = %(group)s

-- name: rotate_secret
-- Stores a new secret; the previous one also signs until the overlap ends.
UPDATE outbox.producer_group
SET previous_secret = secret, secret = %(secret)s,
    previous_expires_at = clock_timestamp() + %(overlap)s * interval '1 second',
    version = version + 1, updated_at = clock_timestamp()
WHERE name = %(name)s AND deleted_at IS NULL
RETURNING previous_expires_at

-- name: audit
-- Appends who changed what.
INSERT INTO outbox.audit_log (action, target, key_id, reason, detail)
VALUES (%(action)s, %(target)s, %(key_id)s, %(reason)s, %(detail)s)
