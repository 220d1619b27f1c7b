-- name: audit
-- Appends who intervened, and why.
INSERT INTO outbox.audit_log (action, target, half_id, key_id, operator, reason, detail)
VALUES (%(action)s, %(target)s, %(half_id)s, %(key_id)s, %(operator)s, %(reason)s, %(detail)s)

-- name: page
-- Reads the newest entries below the cursor that match, of a slice of the log; each message's group by key. Also
-- returns where the slice ends, if it is full. An entry about a group names it as its target.
WITH slice AS MATERIALIZED (
    SELECT id, at, action, target, half_id, key_id, operator, reason, detail
    FROM outbox.audit_log
    WHERE id < coalesce(%(before)s, 9223372036854775807) AND (%(half_id)s::int8 IS NULL OR half_id = %(half_id)s)
    ORDER BY id DESC LIMIT %(slice)s
), looked AS (
    SELECT min(id) AS last_id, min(at) AS back_to FROM slice HAVING count(*) = %(slice)s
), found AS (
    SELECT a.id, a.at, a.action, a.target, CASE WHEN a.half_id IS NOT NULL THEN a.target END AS message_id,
        a.key_id, a.operator, a.reason, a.detail
    FROM slice a
    LEFT JOIN LATERAL (
        SELECT producer_group_id, topic_id, transaction_id FROM outbox.half_message WHERE half_id = a.half_id OFFSET 0
    ) h ON true
    LEFT JOIN outbox.producer_group g ON g.id = h.producer_group_id
    LEFT JOIN outbox.topic t ON t.id = h.topic_id
    WHERE (%(groups)s::int4[] IS NULL OR h.producer_group_id = ANY (%(groups)s::int4[])
            OR a.action LIKE 'group.%%'
            AND a.target IN (SELECT name FROM outbox.producer_group WHERE id = ANY (%(groups)s::int4[])))
        AND (%(action)s::text IS NULL OR a.action = %(action)s)
        AND (%(operator)s::text IS NULL OR a.operator = %(operator)s)
        AND (%(key_id)s::text IS NULL OR a.key_id = %(key_id)s)
        AND (%(producer_group)s::text IS NULL OR g.name = %(producer_group)s
            OR a.action LIKE 'group.%%' AND a.target = %(producer_group)s)
        AND (%(topic)s::text IS NULL OR t.name = %(topic)s)
        AND (%(transaction_id)s::text IS NULL OR h.transaction_id = %(transaction_id)s)
        AND (%(at_from)s::timestamptz IS NULL OR a.at >= %(at_from)s)
        AND (%(at_to)s::timestamptz IS NULL OR a.at < %(at_to)s)
    ORDER BY a.id DESC LIMIT %(limit)s
)
SELECT looked.last_id, looked.back_to, found.*
FROM (VALUES (1)) AS always LEFT JOIN looked ON true LEFT JOIN found ON true
ORDER BY found.id DESC
