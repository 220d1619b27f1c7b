-- name: plan
-- Reads findings by id, each with the reason, if any, why it cannot be accepted. Findings without a message are
-- visible only to callers of all groups.
SELECT f.finding_id, CASE
    WHEN f.status NOT IN ('open', 'accepted') THEN 'not-open'
    WHEN f.class = ANY (%(unread)s::text[]) THEN 'not-acceptable'
    END AS refused
FROM outbox.reconciliation_finding f
WHERE f.finding_id = ANY (%(finding_ids)s::text[])
    AND (%(groups)s::int4[] IS NULL OR EXISTS (
        SELECT FROM outbox.half_message h
        WHERE h.half_id = f.half_id AND h.producer_group_id = ANY (%(groups)s::int4[])
        UNION ALL
        SELECT FROM outbox.parked_message p
        WHERE p.half_id = f.half_id AND p.producer_group_id = ANY (%(groups)s::int4[])))
ORDER BY f.finding_id

-- name: past
-- Returns whether a time is past.
SELECT %(until)s <= clock_timestamp()

-- name: accept
-- Accepts findings that are open, or accepted until another time, with an audit row and a history event for each.
WITH accepted AS (
    UPDATE outbox.reconciliation_finding SET status = 'accepted', accepted_until = %(until)s, updated_at = clock_timestamp()
    WHERE finding_id = ANY (%(finding_ids)s::text[]) AND status IN ('open', 'accepted')
        AND class <> ALL (%(unread)s::text[]) AND %(until)s > clock_timestamp()
    RETURNING finding_id, half_id, class, severity, status
), noted AS (
    INSERT INTO outbox.reconciliation_finding_event (finding_id, event, class, severity, status)
    SELECT finding_id, 'accepted', class, severity, status FROM accepted
)
INSERT INTO outbox.audit_log (action, target, half_id, key_id, operator, reason, detail)
SELECT 'finding.accept', finding_id, half_id, %(key_id)s, %(operator)s, %(reason)s,
    jsonb_build_object('class', class, 'until', %(until)s::timestamptz, 'bulk_action', %(number)s::text)
FROM accepted
RETURNING target

-- name: note
-- Stores an action that is already finished, so that it can be read later.
INSERT INTO outbox.bulk_action (action, groups, operator, reason, key_id, half_ids)
VALUES ('accept_finding', %(groups)s, %(operator)s, %(reason)s, %(key_id)s, '{}')
RETURNING id

-- name: finish
-- Writes the result of an action.
UPDATE outbox.bulk_action SET done = %(done)s, failed = %(failed)s, failures = %(failures)s::jsonb,
    finished_at = clock_timestamp()
WHERE id = %(id)s
