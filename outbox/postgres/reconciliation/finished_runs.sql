-- name: runs
-- Reads runs by the time they finished, newest first, or one run; and in which formats the report of each is kept.
SELECT r.run_id, r.previous_run_id, r.mode, r.started_at, r.cut_at, r.finished_at, r.verdict, r.sentence, r.totals,
    ARRAY(SELECT p.format FROM outbox.reconciliation_report p WHERE p.run_id = r.run_id ORDER BY p.format) AS reports
FROM outbox.reconciliation_run r
WHERE (%(run_id)s::text IS NULL OR r.run_id = %(run_id)s)
    AND (%(after)s::text = '' OR r.finished_at < (
        SELECT last.finished_at FROM outbox.reconciliation_run last WHERE last.run_id = %(after)s::text))
ORDER BY r.finished_at DESC
LIMIT %(limit)s

-- name: report
-- Reads one kept report by key.
SELECT body FROM outbox.reconciliation_report WHERE run_id = %(run_id)s AND format = %(format)s

-- name: findings
-- Reads the findings above info that a run saw, the worst first, then by id: first seen in it or before, and last seen in
-- it or later. The last events of each are in order, oldest first.
SELECT f.finding_id, f.first_run_id, f.last_run_id, f.status, f.kind, f.class AS finding_class, f.detail, f.severity,
    f.half_id, f.topic, f.evidence, f.found_at, f.updated_at, CASE f.status WHEN 'accepted' THEN f.accepted_until END AS accepted_until,
    (SELECT coalesce(jsonb_agg(jsonb_build_object('at', e.happened_at, 'event', e.event, 'finding_class', e.class,
            'detail', e.detail, 'severity', e.severity, 'status', e.status, 'run_id', e.run_id) ORDER BY e.id), '[]')
        FROM (SELECT * FROM outbox.reconciliation_finding_event e
            WHERE e.finding_id = f.finding_id ORDER BY e.id DESC LIMIT %(events)s) e) AS history
FROM outbox.reconciliation_run r
CROSS JOIN outbox.reconciliation_finding f
CROSS JOIN LATERAL (SELECT array_position(ARRAY['critical', 'high', 'medium', 'low'], f.severity) AS n) place
LEFT JOIN outbox.reconciliation_finding seen ON seen.finding_id = %(after)s
JOIN outbox.reconciliation_run first ON first.run_id = f.first_run_id AND first.finished_at <= r.finished_at
JOIN outbox.reconciliation_run last ON last.run_id = f.last_run_id AND last.finished_at >= r.finished_at
WHERE r.run_id = %(run_id)s AND f.severity <> 'info'
    AND (%(after)s = '' OR (place.n, f.finding_id) > (
        array_position(ARRAY['critical', 'high', 'medium', 'low'], seen.severity), seen.finding_id))
    AND (%(kind)s::text IS NULL OR f.kind = %(kind)s)
    AND (%(finding_class)s::text IS NULL OR %(finding_class)s IN (f.class, f.class || '/' || f.detail))
    AND (%(status)s::text IS NULL OR f.status = %(status)s)
    AND (%(topic)s::text IS NULL OR f.topic = %(topic)s)
ORDER BY place.n, f.finding_id
LIMIT %(limit)s

-- name: last
-- Reads the newest run, and the number of inconclusive runs in a row up to it: those after the newest other one, which
-- is found by the index on times. Reads the plan of the newest run only: a plan has a row for each partition.
SELECT verdict, (plan ->> 'coverage')::float8 AS coverage, extract(epoch FROM clock_timestamp() - cut_at)::float8 AS cut_age,
    finished_at AS succeeded_at, (SELECT count(*) FROM outbox.reconciliation_run WHERE finished_at > coalesce((
        SELECT finished_at FROM outbox.reconciliation_run WHERE verdict <> 'inconclusive'
        ORDER BY finished_at DESC LIMIT 1), '-infinity'))::int AS inconclusive
FROM outbox.reconciliation_run
ORDER BY finished_at DESC
LIMIT 1

-- name: open_findings
-- Counts the open findings by the index on them.
SELECT kind, severity, coalesce(topic, '') AS topic, count(*)::int AS findings
FROM outbox.reconciliation_finding
WHERE status = 'open'
GROUP BY 1, 2, 3
