-- name: known
-- Reads which of these findings are known: open, or accepted for now.
SELECT finding_id FROM outbox.reconciliation_finding
WHERE finding_id = ANY (%(seen)s::text[])
    AND (status = 'open' OR status = 'accepted' AND accepted_until > clock_timestamp())

-- name: unseen
-- Reads the open or accepted findings that a run has not seen again, with their next status: fixed if a repair has
-- published the message, unverifiable if no store keeps the evidence any more, else resolved. A message that was
-- missing is unverifiable without evidence. Without a next status a finding stays as it is:
-- a fault in the log, as long as its half is stored, when a record of it has expired or its cause is permanent; a permanent
-- finding about no stored half; one about an excluded topic's content; one about a missing message that no manifest lists
-- any more; and in a run that has read only what is new, all but those that every run judges anew. What the rules of its
-- topic do not know is resolved. A partial run closes only unverifiable ones.
SELECT finding_id, kind, class AS finding_class, detail, status, next_status, severity, half_id, topic, evidence FROM (
    SELECT f.finding_id, f.kind, f.class, f.detail, f.status, f.severity, f.half_id, f.topic, f.evidence, CASE
        WHEN f.finding_id = ANY (%(excused)s::text[]) THEN 'resolved'
        WHEN expired.unread AND NOT expired.half THEN NULL
        WHEN %(continued)s AND NOT (expired.half OR expired.renewed) THEN NULL
        WHEN expired.permanent AND (f.half_id IS NULL OR f.evidence ? 'retired') THEN NULL
        WHEN NOT expired.half AND EXISTS (
            SELECT FROM outbox.held_record h
            WHERE h.half_id = f.half_id AND h.repair IS NOT NULL AND h.released_at IS NOT NULL) THEN 'fixed'
        WHEN NOT (expired.half OR expired.record OR expired.permanent) THEN 'resolved'
        WHEN f.kind = 'missing' OR NOT EXISTS (
            SELECT FROM outbox.half_message h WHERE h.half_id = f.half_id) THEN 'unverifiable'
        END AS next_status
    FROM outbox.reconciliation_finding f
    CROSS JOIN LATERAL (
        SELECT coalesce(f.half_id = ANY (%(half_ids)s::int8[]), false) AS half,
            f.class || '/' || f.detail = ANY (%(permanent)s::text[]) AS permanent,
            f.class || '/' || f.detail = ANY (%(renewed)s::text[]) AS renewed,
            f.half_id IS NOT NULL AND EXISTS (
                SELECT FROM jsonb_to_recordset(coalesce(f.evidence -> 'places', '[]')
                    || (f.evidence || jsonb_build_object('topic', f.topic))) AS place (topic text, "partition" int4, "offset" int8)
                JOIN unnest(%(topics)s::text[], %(partitions)s::int4[], %(starts)s::int8[]) AS log (topic, "partition", start)
                    USING (topic, "partition")
                WHERE place."offset" < log.start) AS record,
            coalesce(f.topic = ANY (%(excluded_topics)s::text[]), false)
                AND f.kind IN ('missing', 'unexpected', 'duplicate', 'mismatch', 'disordered')
                OR f.kind = 'missing' AND coalesce(f.half_id = ANY (%(unlisted)s::int8[]), false) AS unread
    ) expired
    WHERE f.status IN ('open', 'accepted')
        AND NOT EXISTS (SELECT FROM unnest(%(seen)s::text[]) AS seen (finding_id) WHERE seen.finding_id = f.finding_id)
) unseen
WHERE next_status = 'unverifiable' OR next_status IS NULL OR %(complete)s

-- name: close
-- Closes open or accepted findings, each with its status, and adds an event to the history of each.
WITH closed AS (
    UPDATE outbox.reconciliation_finding f SET status = closing.status, updated_at = clock_timestamp()
    FROM unnest(%(finding_ids)s::text[], %(statuses)s::text[]) AS closing (finding_id, status)
    WHERE f.finding_id = closing.finding_id AND f.status IN ('open', 'accepted')
    RETURNING f.finding_id, f.class, f.detail, f.severity, f.status
)
INSERT INTO outbox.reconciliation_finding_event (finding_id, event, class, detail, severity, status, run_id)
SELECT finding_id, status, class, detail, severity, status, %(run_id)s FROM closed

-- name: open_retired
-- Reads which messages of removed leaves have an open finding, except those that are still stored. All leaves below a half
-- id were removed, and some above it.
SELECT DISTINCT f.half_id FROM outbox.reconciliation_finding f
WHERE (f.half_id < %(half_id)s OR f.half_id >> 35 = ANY (%(leaves)s::int8[])) AND f.status IN ('open', 'accepted')
    AND NOT EXISTS (SELECT FROM outbox.half_message h WHERE h.half_id = f.half_id)

-- name: missing
-- Reads the messages with an open finding of the kind missing, except these findings.
SELECT DISTINCT half_id FROM outbox.reconciliation_finding
WHERE status IN ('open', 'accepted') AND kind = 'missing' AND half_id IS NOT NULL
    AND finding_id <> ALL (%(seen)s::text[])

-- name: accepted
-- Reads the findings that are accepted at present.
SELECT finding_id FROM outbox.reconciliation_finding WHERE status = 'accepted' AND accepted_until > clock_timestamp()

-- name: save_findings
-- Inserts findings by their stable ids, or updates them to this run. An accepted finding stays accepted until its time
-- ends. A new or reopened finding, and another class, detail or severity, add an event to the history.
WITH seen AS (
    SELECT finding_id, kind, finding_class AS class, detail, severity, half_id, topic, evidence
    FROM json_to_recordset(%(seen)s) AS seen (
        finding_id text, kind text, finding_class text, detail text, severity text, half_id int8, topic text, evidence jsonb)
), before AS (
    SELECT finding_id, f.class, f.detail, f.severity, f.status
    FROM outbox.reconciliation_finding f JOIN seen USING (finding_id)
), saved AS (
    INSERT INTO outbox.reconciliation_finding AS known (
        finding_id, first_run_id, last_run_id, status, kind, class, detail, severity, half_id, topic, evidence)
    SELECT finding_id, %(run_id)s, %(run_id)s, 'open', kind, class, detail, severity, half_id, topic, evidence
    FROM seen
    ON CONFLICT (finding_id) DO UPDATE SET
        last_run_id = excluded.last_run_id, kind = excluded.kind, class = excluded.class, detail = excluded.detail,
        severity = excluded.severity, half_id = excluded.half_id, topic = excluded.topic, evidence = excluded.evidence,
        updated_at = clock_timestamp(),
        status = CASE WHEN known.status = 'accepted' AND known.accepted_until > clock_timestamp()
            THEN known.status ELSE 'open' END
    RETURNING finding_id, class, detail, severity, status
), changed AS (
    SELECT finding_id, s.class, s.detail, s.severity, s.status, CASE
        WHEN b.status IS NULL THEN 'found'
        WHEN s.status = 'open' AND b.status <> 'open' THEN 'reopened'
        WHEN (s.class, s.detail, s.severity) <> (b.class, b.detail, b.severity) THEN 'refined' END AS event
    FROM saved s LEFT JOIN before b USING (finding_id)
)
INSERT INTO outbox.reconciliation_finding_event (finding_id, event, class, detail, severity, status, run_id)
SELECT finding_id, event, class, detail, severity, status, %(run_id)s FROM changed WHERE event IS NOT NULL

-- name: delete_old_findings
-- Deletes findings that were closed before the retention time, with their history.
WITH forgotten AS (
    DELETE FROM outbox.reconciliation_finding
    WHERE status IN ('resolved', 'fixed', 'unverifiable')
        AND updated_at < clock_timestamp() - make_interval(days => %(keep_days)s::int4)
    RETURNING finding_id
)
DELETE FROM outbox.reconciliation_finding_event e USING forgotten WHERE e.finding_id = forgotten.finding_id
