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

-- name: of_transaction_id
-- Halves with this transaction id, of every group: by key.
SELECT half_id FROM outbox.transaction_key
WHERE producer_group_id IN (SELECT id FROM outbox.producer_group) AND transaction_id = %(transaction_id)s::text

-- name: slice
-- The newest ids of a queue below the cursor; an id may be in the queue twice. A condition here would be looked for
-- through all the others, or let the planner sort them all; without ON, DISTINCT may hash them all.
SELECT DISTINCT ON (half_id) half_id FROM ({queue}) AS named
WHERE %(before)s::int8 IS NULL OR half_id < %(before)s::int8
ORDER BY half_id DESC LIMIT %(slice)s

-- name: end_of_slice
-- The last id of a full slice, and when it was prepared.
SELECT half_id AS next_before,
    (SELECT prepared_at FROM outbox.half_message WHERE half_id = last.half_id) AS searched_back_to
FROM (SELECT half_id FROM ({slice}) AS ids ORDER BY half_id DESC LIMIT 1 OFFSET %(slice)s - 1) AS last

-- name: candidates
-- Selects the ids of a slice, and of no other message, whose half a filter wants, each by key. They are sorted before their
-- rows are looked up, so a page looks up little more than it shows, however many they are. PostgreSQL computes only what is
-- asked; OFFSET 0 keeps the look-ups behind the limit of the ids. A published message counts as COMMITTED. "checks" are
-- those since a recheck, if there was one: those of the current round do, whatever the clock was.
SELECT ids.half_id
FROM ({slice}) AS ids
CROSS JOIN LATERAL (
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
) AS half
WHERE (%(groups)s::int4[] IS NULL OR producer_group_id = ANY (%(groups)s::int4[]))
    AND (%(state)s::text IS NULL OR state = %(state)s::text)
    AND (%(producer_group)s::text IS NULL
        OR producer_group_id = (SELECT id FROM outbox.producer_group WHERE name = %(producer_group)s::text))
    AND (%(topic)s::text IS NULL OR topic_id = (SELECT id FROM outbox.topic WHERE name = %(topic)s::text))
    AND (%(transaction_id)s::text IS NULL OR transaction_id = %(transaction_id)s::text)
    AND (%(key)s::bytea IS NULL OR key = %(key)s::bytea)
    AND (%(tag)s::text IS NULL OR tags @> ARRAY[%(tag)s::text])
    AND (%(decided_by)s::text IS NULL OR decided_by = %(decided_by)s::text)
    AND (%(prepared_from)s::timestamptz IS NULL OR prepared_at >= %(prepared_from)s::timestamptz)
    AND (%(prepared_to)s::timestamptz IS NULL OR prepared_at < %(prepared_to)s::timestamptz)
    AND (%(min_checks)s::int8 IS NULL OR checks >= %(min_checks)s::int8)
    AND (%(last_outcome)s::text IS NULL OR last_outcome = %(last_outcome)s::text)
    AND (%(last_http_status)s::int4 IS NULL OR last_http_status = %(last_http_status)s::int4)
    AND (%(trace_id)s::text IS NULL OR trace_id = %(trace_id)s::text)
ORDER BY ids.half_id DESC
LIMIT %(most)s
