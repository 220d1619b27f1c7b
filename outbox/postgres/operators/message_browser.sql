-- name: messages
-- Reads, by key, messages as REST shows them, with their payload or without: the half, all messages of its decision if
-- there are several, and of their leader the parking, the checks made since its age began (those of the current round
-- whatever the clock was), and when the next is due: by its row of the queue, not before an open breaker's probe; before
-- its sweep, by its immunity. What was stored before the clock was set back is due as "due_rows" and the sweep take it;
-- of a paused group none is. The bounds prune leaves.
SELECT h.half_id, h.prepared_at, g.name AS producer_group, t.name AS topic, h."partition", h.transaction_id,
    h.content_type, coalesce(h.tags, '{}') AS tags, octet_length(h.value) AS value_bytes,
    CASE WHEN %(payload)s THEN h.headers END AS headers,
    CASE WHEN %(payload)s THEN h.key END AS key,
    CASE WHEN %(payload)s THEN h.value END AS value,
    CASE WHEN NOT g.paused THEN coalesce(greatest(queued.due_at, b.probe_at), least(h.prepared_at, clock_timestamp())
        + make_interval(secs => coalesce(h.check_immunity_seconds, g.transaction_timeout_seconds))) END AS next_check_at,
    p.parked_at, p.parked_reason, spent.check_count, last.last_check,
    decision.message_ids
FROM outbox.half_message h
CROSS JOIN LATERAL (SELECT coalesce(h.leader_id, h.half_id) AS half_id) leader
LEFT JOIN LATERAL (
    SELECT array_agg(outbox.message_id(each.half_id, each.nonce)::text ORDER BY each.half_id) AS message_ids
    FROM outbox.half_message first
    JOIN outbox.half_message each ON each.half_id = ANY (first.half_id || first.followers)
    WHERE (h.followers IS NOT NULL OR h.leader_id IS NOT NULL) AND first.half_id = leader.half_id
        AND first.half_id BETWEEN %(low)s AND %(high)s AND each.half_id BETWEEN %(low)s AND %(high)s
) decision ON true
JOIN outbox.producer_group g ON g.id = h.producer_group_id
JOIN outbox.topic t ON t.id = h.topic_id
LEFT JOIN outbox.parked_message p ON p.half_id = leader.half_id
LEFT JOIN outbox.recheck r ON r.half_id = leader.half_id
LEFT JOIN LATERAL (
    SELECT count(*) AS check_count FROM outbox.check_attempt
    WHERE half_id = leader.half_id AND half_id BETWEEN %(low)s AND %(high)s AND counted
        AND (round = coalesce(r.round, 1) OR asked_at >= r.rechecked_at)
) spent ON true
LEFT JOIN LATERAL (
    SELECT jsonb_build_object(
        'at', asked_at, 'outcome', outcome, 'http_status', http_status, 'latency_ms', latency_ms) AS last_check
    FROM outbox.check_attempt
    WHERE half_id = leader.half_id AND half_id BETWEEN %(low)s AND %(high)s
    ORDER BY look_id DESC LIMIT 1
) last ON true
LEFT JOIN LATERAL (
    SELECT due_at FROM outbox.check_queue
    WHERE producer_group_id = h.producer_group_id AND age_from = coalesce(r.rechecked_at, h.prepared_at)
        AND half_id = leader.half_id AND round = coalesce(r.round, 1)
    ORDER BY id DESC LIMIT 1
) queued ON true
LEFT JOIN outbox.check_breaker b ON b.producer_group_id = h.producer_group_id AND queued.due_at IS NOT NULL
WHERE h.half_id = ANY (%(half_ids)s::int8[]) AND h.half_id BETWEEN %(low)s AND %(high)s
    AND (%(nonce)s::int8 IS NULL OR h.nonce = %(nonce)s)
    AND (%(groups)s::int4[] IS NULL OR h.producer_group_id = ANY (%(groups)s::int4[]))

-- name: checks
-- Reads the newest checks by key, up to a limit, and of each of their halves the group by key; and where
-- the slice ends, if it is full.
-- Messages that were never checked are not read.
WITH slice AS MATERIALIZED (
    SELECT half_id, asked_at, attempt, outcome, http_status, latency_ms, counted, applied
    FROM outbox.check_attempt ORDER BY half_id DESC, look_id DESC LIMIT %(slice)s
), half AS MATERIALIZED (
    SELECT s.half_id, h.nonce, h.producer_group_id, h.prepared_at
    FROM (SELECT DISTINCT half_id FROM slice) s
    CROSS JOIN LATERAL (
        SELECT nonce, producer_group_id, prepared_at FROM outbox.half_message WHERE half_id = s.half_id OFFSET 0
    ) h
)
SELECT looked.back_to, half_id, h.nonce, s.asked_at AS at, s.attempt, s.outcome, s.http_status, s.latency_ms, s.counted, s.applied
FROM (SELECT min(prepared_at) FILTER (WHERE (SELECT count(*) FROM slice) = %(slice)s) AS back_to FROM half) looked
LEFT JOIN (slice s JOIN half h USING (half_id)) ON h.producer_group_id = %(group)s
ORDER BY s.asked_at DESC LIMIT %(limit)s

-- name: history
-- Reads, by key, everything that happened to one half, oldest first; ``rank`` orders equal times. The checks are those of
-- its leader.
WITH leader AS MATERIALIZED (
    SELECT coalesce(leader_id, half_id) AS half_id FROM outbox.half_message WHERE half_id = %(half_id)s
)
SELECT at, type, facts FROM (
    SELECT prepared_at AS at, 1 AS rank, 0::bigint AS n, 'prepared' AS type,
        jsonb_build_object('key_id', key_id, 'traceparent', traceparent) AS facts
    FROM outbox.half_message WHERE half_id = %(half_id)s
    UNION ALL
    SELECT asked_at, 3, look_id, 'check', jsonb_build_object(
        'attempt', attempt, 'outcome', outcome, 'http_status', http_status, 'latency_ms', latency_ms,
        'counted', counted, 'applied', applied)
    FROM outbox.check_attempt WHERE half_id = (SELECT half_id FROM leader)
    UNION ALL
    SELECT decided_at, 5, 0, 'decided', jsonb_build_object(
        'decision', CASE decision WHEN 1 THEN 'COMMIT' ELSE 'ROLLBACK' END,
        'decided_by', (ARRAY['producer', 'check', 'operator', 'policy', 'recovery'])[decided_by],
        'operator', actor, 'reason', reason)
    FROM outbox.op_message WHERE half_id = %(half_id)s
    UNION ALL
    SELECT parked_at, 4, 0, 'parked', jsonb_build_object('reason', parked_reason, 'check_count', check_count)
    FROM outbox.parked_message WHERE half_id = (SELECT half_id FROM leader)
    UNION ALL
    SELECT (earlier ->> 'at')::timestamptz, 4, 0, 'parked', earlier - 'at'
    FROM outbox.parked_message CROSS JOIN LATERAL jsonb_array_elements(earlier_parkings) AS earlier
    WHERE half_id = (SELECT half_id FROM leader)
    UNION ALL
    SELECT at, CASE action WHEN 'message.recheck' THEN 2 ELSE 7 END, id,
        CASE action WHEN 'published_again' THEN action ELSE split_part(action, '.', 2) END,
        jsonb_build_object('operator', operator, 'reason', reason)
    FROM outbox.audit_log WHERE half_id = %(half_id)s AND action IN ('held.release', 'held.drop', 'message.republish', 'published_again')
        OR half_id = (SELECT half_id FROM leader) AND action = 'message.recheck'
    UNION ALL
    SELECT held_at, 6, 0, 'publish_failed', jsonb_build_object('error', publish_error, 'attempts', attempts)
    FROM outbox.held_record WHERE half_id = %(half_id)s
) happened
ORDER BY at, rank, n
