-- name: known
-- Reads which of these findings are not new: open, or accepted for now.
SELECT finding_id FROM outbox.reconciliation_finding
WHERE finding_id = ANY (%(seen)s::text[])
    AND (status = 'open' OR status = 'accepted' AND accepted_until > clock_timestamp())

-- name: closing
-- Reads what becomes of the findings, open or accepted, that a run has not seen again: unverifiable where a store no
-- longer keeps what would show it, fixed where a repair has published the message. A partial run closes only the former.
SELECT finding_id, kind, class, status, becomes FROM (
    SELECT f.finding_id, f.kind, f.class, f.status, CASE
        WHEN f.half_id = ANY (%(half_ids)s::int8[]) THEN 'unverifiable'
        WHEN EXISTS (
            SELECT FROM outbox.held_record h
            WHERE h.half_id = f.half_id AND h.repair IS NOT NULL AND h.released_at IS NOT NULL) THEN 'fixed'
        WHEN f.half_id IS NOT NULL AND (f.detail ->> 'offset')::int8 < log.start THEN 'unverifiable'
        ELSE 'resolved' END AS becomes
    FROM outbox.reconciliation_finding f
    LEFT JOIN unnest(%(topics)s::text[], %(partitions)s::int4[], %(starts)s::int8[]) AS log (topic, "partition", start)
        ON log.topic = f.topic AND log."partition" = (f.detail ->> 'partition')::int4
    WHERE f.status IN ('open', 'accepted')
        AND NOT EXISTS (SELECT FROM unnest(%(seen)s::text[]) AS seen (finding_id) WHERE seen.finding_id = f.finding_id)
) unseen
WHERE %(complete)s OR becomes = 'unverifiable'

-- name: close
-- Closes findings, each with its status.
UPDATE outbox.reconciliation_finding f SET status = closed.status, updated_at = clock_timestamp()
FROM unnest(%(finding_ids)s::text[], %(statuses)s::text[]) AS closed (finding_id, status)
WHERE f.finding_id = closed.finding_id

-- name: lock_open
-- Reads and locks those of these findings that are open.
SELECT finding_id FROM outbox.reconciliation_finding
WHERE finding_id = ANY (%(finding_ids)s::text[]) AND status = 'open'
ORDER BY finding_id
FOR UPDATE

-- name: refine
-- Writes what is known by now of a finding; the run that saw it last stays the same.
UPDATE outbox.reconciliation_finding
SET class = %(class)s, severity = %(severity)s, half_id = %(half_id)s, topic = %(topic)s, detail = %(detail)s,
    updated_at = clock_timestamp()
WHERE finding_id = %(finding_id)s

-- name: open_below
-- Reads by the index on half ids which messages below one still have a finding about what lies in the stores.
SELECT DISTINCT half_id FROM outbox.reconciliation_finding
WHERE half_id < %(half_id)s AND status IN ('open', 'accepted') AND kind <> 'stuck'

-- name: accepted
-- Reads the findings that are accepted now.
SELECT finding_id FROM outbox.reconciliation_finding WHERE status = 'accepted' AND accepted_until > clock_timestamp()

-- name: statuses
-- Reads one run with the findings it saw: those first seen in it or before, and last seen in it or later.
SELECT f.finding_id, f.class, f.severity, f.status
FROM outbox.reconciliation_run r
LEFT JOIN LATERAL (
    SELECT f.finding_id, f.class, f.severity, f.status
    FROM outbox.reconciliation_finding f
    JOIN outbox.reconciliation_run first ON first.run_id = f.first_run_id AND first.finished_at <= r.finished_at
    JOIN outbox.reconciliation_run last ON last.run_id = f.last_run_id AND last.finished_at >= r.finished_at
) f ON true
WHERE r.run_id = %(run_id)s
ORDER BY f.finding_id

-- name: save_finding
-- Writes a finding by its stable id, or moves it to this run; an accepted one stays so until its time has come.
INSERT INTO outbox.reconciliation_finding AS known (
    finding_id, first_run_id, last_run_id, status, kind, class, severity, half_id, topic, detail)
VALUES (%(finding_id)s, %(run_id)s, %(run_id)s, 'open', %(kind)s, %(class)s, %(severity)s, %(half_id)s, %(topic)s, %(detail)s)
ON CONFLICT (finding_id) DO UPDATE SET
    last_run_id = excluded.last_run_id, kind = excluded.kind, class = excluded.class, severity = excluded.severity,
    half_id = excluded.half_id, topic = excluded.topic, detail = excluded.detail, updated_at = clock_timestamp(),
    status = CASE WHEN known.status = 'accepted' AND known.accepted_until > clock_timestamp()
        THEN known.status ELSE 'open' END

-- name: forget_closed
-- Deletes findings that have been closed for so long.
DELETE FROM outbox.reconciliation_finding
WHERE status IN ('resolved', 'fixed', 'unverifiable')
    AND updated_at < clock_timestamp() - make_interval(days => %(keep_days)s)
