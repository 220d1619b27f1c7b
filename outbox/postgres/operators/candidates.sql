-- name: all
-- Every half message.
SELECT half_id FROM outbox.half_message

-- name: undecided
-- Halves after the sweep's cursor, and those that wait for a check; of a decision its leader alone.
SELECT half_id FROM outbox.half_message
WHERE half_id > coalesce((SELECT position FROM outbox.progress WHERE name = 'sweep'), 0)
    AND leader_id IS NULL
UNION ALL
SELECT half_id FROM outbox.check_queue

-- name: parked
-- Messages that were parked, resumed and decided ones too.
SELECT half_id FROM outbox.parked_message

-- name: unpublished
-- Committed halves that the relay of their shard has not passed yet, and held records that are not published, dropped
-- ones too.
SELECT half_id FROM outbox.unpassed_commit
UNION ALL
SELECT half_id FROM outbox.held_record WHERE released_at IS NULL

-- name: unsettled
-- Held records that an operator may still release or drop.
SELECT half_id FROM outbox.open_held

-- name: half
-- The half "ids.half_id" with what a filter may ask of it, each by key. PostgreSQL computes only what is asked; OFFSET 0
-- keeps the look-ups behind the limit of the ids. A published message counts as COMMITTED. "checks" are those since a
-- recheck, if there was one: those of the current round do, whatever the clock was.
SELECT h.key, h.transaction_id, h.producer_group_id, h.topic_id, h.prepared_at, h.tags,
    substr(h.traceparent, 4, 32) AS trace_id,
    CASE (SELECT decision FROM outbox.op_message o WHERE o.half_id = h.half_id)
        WHEN 1 THEN 'COMMITTED'
        WHEN 2 THEN 'ROLLED_BACK'
        ELSE coalesce((
            SELECT 'PARKED' FROM outbox.parked_message p WHERE p.half_id = h.half_id AND p.resumed_at IS NULL
        ), 'PREPARED')
    END AS state,
    (SELECT (ARRAY['producer', 'check', 'operator', 'policy', 'recovery'])[decided_by]
        FROM outbox.op_message o WHERE o.half_id = h.half_id) AS decided_by,
    coalesce((
        SELECT outcome FROM outbox.check_attempt c WHERE c.half_id = h.half_id ORDER BY look_id DESC LIMIT 1
    ), 'none') AS last_outcome,
    (SELECT http_status FROM outbox.check_attempt c WHERE c.half_id = h.half_id ORDER BY look_id DESC LIMIT 1)
        AS last_http_status,
    (SELECT count(*) FROM outbox.check_attempt c WHERE c.half_id = h.half_id AND counted AND (
        round = coalesce((SELECT r.round FROM outbox.recheck r WHERE r.half_id = h.half_id), 1)
        OR asked_at >= (SELECT r.rechecked_at FROM outbox.recheck r WHERE r.half_id = h.half_id)
    )) AS checks
FROM outbox.half_message h
WHERE h.half_id = ids.half_id
OFFSET 0
