-- name: list_held
-- Reads held records by ascending half id, the open or the dropped ones, with their topic. Counts how many open
-- rows of the scope come after each, up to a number: of the topic if all of it is held, otherwise of the key, each by its
-- index. With groups, only records of their messages.
SELECT r.half_id, r.nonce, t.name AS topic, r.topic_wide, r.held_at, r.publish_error, r.attempts,
    r.next_attempt_at, r.dropped_at, r.drop_reason, t.max_message_bytes, coalesce((
        SELECT coalesce(octet_length(h.key), 0) + coalesce(octet_length(h.value), 0)
            + coalesce((SELECT sum(octet_length(part)) FROM unnest(h.headers) AS part), 0)
        FROM outbox.half_message h WHERE h.half_id = r.half_id), 0) AS content_bytes,
    CASE WHEN r.topic_wide THEN (
        SELECT count(*) FROM (
            SELECT FROM outbox.open_held w
            WHERE w.shard = r.shard AND w.redriven = coalesce(r.repair, '') AND w.topic_id = r.topic_id
                AND (w.xid, w.n) > (r.xid, r.n)
            LIMIT %(counted)s) AS behind
    ) WHEN r.key IS NULL THEN 0 ELSE (
        SELECT count(*) FROM (
            SELECT FROM outbox.open_held w
            WHERE w.shard = r.shard AND w.redriven = coalesce(r.repair, '') AND w.topic_id = r.topic_id
                AND w.scope <= sha256(r.key) AND (w.scope, w.xid, w.n) > (sha256(r.key), r.xid, r.n)
            ORDER BY w.scope, w.xid, w.n
            LIMIT %(counted)s) AS behind
    ) END AS waiting_behind
FROM outbox.held_record r
JOIN outbox.topic t ON t.id = r.topic_id
WHERE r.released_at IS NULL AND (r.dropped_at IS NOT NULL) = %(dropped)s
    AND (%(after)s::int8 IS NULL OR r.half_id > %(after)s)
    AND (%(topic)s::text IS NULL OR r.topic_id = (SELECT id FROM outbox.topic WHERE name = %(topic)s))
    AND (NOT %(refused_only)s OR r.attempts > 0)
    AND (%(groups)s::int4[] IS NULL OR EXISTS (
        SELECT FROM outbox.half_message WHERE half_id = r.half_id AND producer_group_id = ANY (%(groups)s::int4[])))
ORDER BY r.half_id
LIMIT %(limit)s

-- name: lock_held
-- Locks one held record by key and returns whether it is open. With groups, only a record of their messages.
SELECT released_at IS NULL AND dropped_at IS NULL AS is_open FROM outbox.held_record
WHERE half_id = %(half_id)s AND nonce = %(nonce)s
    AND (%(groups)s::int4[] IS NULL OR EXISTS (
        SELECT FROM outbox.half_message WHERE half_id = %(half_id)s AND producer_group_id = ANY (%(groups)s::int4[])))
FOR UPDATE

-- name: release_held
-- Makes the refused records of a record's scope due now, by the index of those that are due; records that only wait are
-- already due. Repairs have scopes of their own.
UPDATE outbox.held_record w SET next_attempt_at = clock_timestamp()
FROM outbox.held_record r
WHERE r.half_id = %(half_id)s AND w.shard = r.shard AND coalesce(w.repair, '') = coalesce(r.repair, '')
    AND w.topic_id = r.topic_id AND (w.attempts > 0 OR w.repair IS NOT NULL)
    AND w.released_at IS NULL AND w.dropped_at IS NULL AND w.next_attempt_at > statement_timestamp()
    AND (w.half_id = r.half_id OR w.topic_wide OR r.topic_wide OR w.key = r.key)

-- name: drop_held
-- Drops a held record; the row is kept.
UPDATE outbox.held_record SET dropped_at = clock_timestamp(), drop_reason = %(reason)s
WHERE half_id = %(half_id)s
