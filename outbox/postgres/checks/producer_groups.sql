-- name: lock_name
-- Serializes the changes of a group by its name, also while the row does not exist yet. Waits for an advisory lock.
SELECT pg_advisory_xact_lock(hashtext('outbox.producer_group'), hashtext(%(name)s))

-- name: page
-- Reads registered groups by name, after the last one of the previous page; if asked, only those with a breaker that is
-- not closed.
SELECT id, name, check_url, check_interval_seconds, check_max, check_timeout_seconds,
    transaction_timeout_seconds, on_check_max, backoff, max_inflight, batch_check, check_payload, topics,
    max_age_seconds, paused, pause_reason, version, created_at, updated_at,
    CASE WHEN b.probe_at IS NULL THEN 'closed' WHEN b.probe_at > clock_timestamp() THEN 'open' ELSE 'half-open' END AS breaker
FROM outbox.producer_group
LEFT JOIN outbox.check_breaker b ON b.producer_group_id = id
WHERE deleted_at IS NULL AND name > %(after)s AND (%(names)s::text[] IS NULL OR name = ANY (%(names)s::text[]))
    AND (NOT %(tripped)s::bool OR b.probe_at IS NOT NULL)
ORDER BY name
LIMIT %(limit)s

-- name: get
-- Reads one registered group.
SELECT id, name, check_url, check_interval_seconds, check_max, check_timeout_seconds,
    transaction_timeout_seconds, on_check_max, backoff, max_inflight, batch_check, check_payload, topics,
    max_age_seconds, paused, pause_reason, version, created_at, updated_at,
    CASE WHEN b.probe_at IS NULL THEN 'closed' WHEN b.probe_at > clock_timestamp() THEN 'open' ELSE 'half-open' END AS breaker
FROM outbox.producer_group
LEFT JOIN outbox.check_breaker b ON b.producer_group_id = id
WHERE name = %(name)s AND deleted_at IS NULL

-- name: health
-- Counts the due checks among the first rows of each delay class of a group, and reads when its secret was made: at its
-- registration, or by the newest rotation in a slice of the audit log. Of an older rotation it returns a bound. Reads no
-- history; locks nothing.
SELECT queued.due,
    CASE WHEN g.previous_expires_at IS NULL THEN g.created_at ELSE rotated.at END AS secret_changed_at,
    CASE WHEN g.previous_expires_at IS NOT NULL AND rotated.at IS NULL
        THEN least(g.previous_expires_at, g.updated_at) END AS secret_changed_before,
    (SELECT max(each.at) FROM unnest(g.previous_expires_at || g.older_expire_at) AS each (at)
        WHERE each.at > clock_timestamp()) AS previous_secret_expires_at
FROM outbox.producer_group g
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE due_at <= clock_timestamp()) AS due
    FROM (
        SELECT head.due_at
        FROM outbox.check_class c
        CROSS JOIN LATERAL (
            SELECT due_at FROM outbox.check_queue
            WHERE producer_group_id = c.producer_group_id AND delay_seconds = c.delay_seconds AND id > c.position
            ORDER BY id
            LIMIT %(due)s
        ) head
        WHERE c.producer_group_id = g.id
        LIMIT %(looked)s
    ) looked
) queued
LEFT JOIN LATERAL (
    SELECT newest.at
    FROM (
        SELECT id, at, action, target FROM outbox.audit_log
        WHERE g.previous_expires_at IS NOT NULL
        ORDER BY id DESC
        LIMIT %(slice)s
    ) newest
    WHERE newest.action = 'group.rotate_secret' AND newest.target = g.name
    ORDER BY newest.id DESC
    LIMIT 1
) rotated ON true
WHERE g.name = %(name)s AND g.deleted_at IS NULL

-- name: signing
-- Reads the secrets that sign a registered group's checks now, and the database's time.
SELECT secret,
    array_remove(ARRAY[CASE WHEN previous_expires_at > clock_timestamp() THEN previous_secret END], NULL) || ARRAY(
        SELECT older.secret FROM unnest(older_secrets, older_expire_at) WITH ORDINALITY AS older (secret, expires_at, place)
        WHERE older.expires_at > clock_timestamp() ORDER BY older.place) AS previous_secrets,
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
    secret = excluded.secret, previous_secret = NULL, previous_expires_at = NULL, older_secrets = '{}',
    older_expire_at = '{}', paused = false, pause_reason = NULL, version = g.version + 1, created_at = clock_timestamp(), updated_at = clock_timestamp(),
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
-- relay has passed yet, or that are held. Reads only after the cursors, each half and op by key, never history: LATERAL
-- ... OFFSET 0 and the scalar subqueries keep the planner from joining whole tables.
SELECT EXISTS (
    SELECT FROM outbox.half_message h
    WHERE h.half_id > coalesce((SELECT position FROM outbox.progress WHERE name = 'sweep'), 0)
        AND h.producer_group_id = %(group)s
        AND (SELECT decision FROM outbox.op_message WHERE half_id = h.half_id) IS NULL
) OR EXISTS (
    SELECT FROM outbox.check_class c
    CROSS JOIN LATERAL (
        SELECT half_id, round FROM outbox.check_queue
        WHERE producer_group_id = c.producer_group_id AND delay_seconds = c.delay_seconds AND id > c.position
        OFFSET 0
    ) q
    WHERE c.producer_group_id = %(group)s
        AND q.round = coalesce((SELECT round FROM outbox.recheck WHERE half_id = q.half_id), 1)
        AND (SELECT decision FROM outbox.op_message WHERE half_id = q.half_id) IS NULL
) OR EXISTS (
    SELECT FROM outbox.parked_message p
    WHERE p.producer_group_id = %(group)s
        AND (SELECT decision FROM outbox.op_message WHERE half_id = p.half_id) IS NULL
) OR EXISTS (
    SELECT FROM generate_series(0, 15) s (shard)
    LEFT JOIN outbox.progress p ON p.name = 'relay:' || s.shard
    CROSS JOIN LATERAL (
        SELECT xid, half_ids FROM outbox.commit_log
        WHERE shard = s.shard AND xid >= coalesce(p.position, 0)
        OFFSET 0
    ) c
    CROSS JOIN LATERAL unnest(c.half_ids) WITH ORDINALITY AS committed (half_id, n)
    CROSS JOIN LATERAL (
        SELECT producer_group_id FROM outbox.half_message WHERE half_id = committed.half_id
        UNION
        SELECT producer_group_id FROM outbox.parked_message WHERE half_id = committed.half_id
    ) h
    WHERE (c.xid, committed.n) > (coalesce(p.position, 0), coalesce(p.position_n, 0))
        AND h.producer_group_id = %(group)s
) OR EXISTS (
    SELECT FROM outbox.held_record r
    CROSS JOIN LATERAL (
        SELECT producer_group_id FROM outbox.half_message WHERE half_id = r.half_id
        UNION
        SELECT producer_group_id FROM outbox.parked_message WHERE half_id = r.half_id
    ) h
    WHERE r.released_at IS NULL AND r.dropped_at IS NULL AND h.producer_group_id = %(group)s
)

-- name: seen
-- Returns what is visible now, for "arrived", and whether messages of SQL mode wait: later they have ids of that time.
SELECT pg_current_snapshot()::text, EXISTS (SELECT FROM outbox.plain_message WHERE producer_group_id = %(group)s)

-- name: arrived
-- Returns whether a group has messages that a snapshot has not seen, by ranges of the key: those of the transactions
-- that were open then, and newer ones. It reads no backlog, since flushes wait meanwhile.
SELECT EXISTS (
    SELECT FROM outbox.half_message
    WHERE producer_group_id = %(group)s
        AND half_id >= (SELECT (pg_snapshot_xmax(CAST(%(seen)s AS pg_snapshot))::text::bigint + base) << 15 FROM outbox.installation)
        AND half_id < (SELECT (pg_snapshot_xmax(pg_current_snapshot())::text::bigint + base) << 15 FROM outbox.installation)
) OR EXISTS (
    SELECT FROM outbox.installation, pg_snapshot_xip(CAST(%(seen)s AS pg_snapshot)) AS open (xid), LATERAL (
        SELECT producer_group_id FROM outbox.half_message
        WHERE half_id BETWEEN (open.xid::text::bigint + base) << 15 AND ((open.xid::text::bigint + base + 1) << 15) - 1
        OFFSET 0
    ) AS late
    WHERE late.producer_group_id = %(group)s
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
SET paused = %(paused)s, pause_reason = %(reason)s, version = version + 1, updated_at = clock_timestamp()
WHERE name = %(name)s AND deleted_at IS NULL

-- name: close_breaker
-- Closes a group's breaker, so that its checks start at once: the change or the resume may have fixed the cause. So
-- the time for which its checks have failed starts again.
WITH closed AS (DELETE FROM outbox.check_breaker WHERE producer_group_id = %(group)s)
DELETE FROM outbox.progress WHERE name = 'failing:' || %(group)s::int4

-- name: rotate_secret
-- Stores a new secret; the previous one also signs until the overlap ends, and those that earlier rotations replaced
-- until theirs end. Without an overlap only the new one signs.
UPDATE outbox.producer_group
SET previous_secret = secret, secret = %(secret)s,
    previous_expires_at = clock_timestamp() + %(overlap)s * interval '1 second',
    (older_secrets, older_expire_at) = (
        SELECT coalesce(array_agg(secret ORDER BY place), '{}'), coalesce(array_agg(expires_at ORDER BY place), '{}')
        FROM (
            SELECT * FROM unnest(previous_secret || older_secrets, previous_expires_at || older_expire_at)
                WITH ORDINALITY AS replaced (secret, expires_at, place)
            WHERE %(overlap)s > 0 AND expires_at > clock_timestamp()
            ORDER BY place
            LIMIT %(most)s
        ) kept),
    version = version + 1, updated_at = clock_timestamp()
WHERE name = %(name)s AND deleted_at IS NULL
RETURNING previous_expires_at

-- name: audit
-- Appends who changed what.
INSERT INTO outbox.audit_log (action, target, key_id, operator, reason, detail)
VALUES (%(action)s, %(target)s, %(key_id)s, %(operator)s, %(reason)s, %(detail)s)
