-- name: parked
-- Counts per group the parked halves that nobody has ended, by the index on parked halves that were not resumed.
SELECT 'PARKED' AS finding_class, g.name AS producer_group, jsonb_build_object(
    'halves', sum(r.n), 'oldest_parked_at', min(r.oldest), 'reasons', jsonb_object_agg(r.parked_reason, r.n)) AS detail
FROM (
    SELECT p.producer_group_id, p.parked_reason, count(*) AS n, min(p.parked_at) AS oldest
    FROM outbox.parked_message p
    WHERE p.resumed_at IS NULL AND NOT EXISTS (SELECT FROM outbox.op_message o WHERE o.half_id = p.half_id)
    GROUP BY 1, 2
) r
JOIN outbox.producer_group g ON g.id = r.producer_group_id
GROUP BY g.name
ORDER BY g.name

-- name: waiting
-- Reads the oldest thousand rows of each delay class after its cursor, and the oldest thousand halves after the cursor
-- of the sweep. Returns the halves whose end, and the groups whose check was due two intervals (of half a minute or
-- more) before the snapshot. The halves of a group that cannot be asked (paused, deleted, its breaker open) end by age
-- only, in the order of their class, and it is not silent; nor is a group with a check attempt since. The last test
-- reads all check attempts, but only for a group that meets the other conditions.
WITH policy AS MATERIALIZED (
    SELECT g.id, g.name, g.check_max, g.max_age_seconds, g.transaction_timeout_seconds,
        %(at)s - 2 * make_interval(secs => greatest(g.check_interval_seconds, 30)) AS bound,
        NOT g.paused AND g.deleted_at IS NULL
            AND NOT EXISTS (SELECT FROM outbox.check_breaker b WHERE b.producer_group_id = g.id) AS asked
    FROM outbox.producer_group g
), waiting AS (
    SELECT q.half_id, q.producer_group_id, q.check_count, q.due_at, q.age_from, q.newest, 0 AS immunity
    FROM outbox.check_class c
    CROSS JOIN LATERAL (
        SELECT head.*, max(age_from) OVER (ORDER BY id) AS newest
        FROM (
            SELECT * FROM outbox.check_queue
            WHERE producer_group_id = c.producer_group_id AND delay_seconds = c.delay_seconds AND id > c.position
                AND id < (SELECT outbox.watermark() << 15)
            ORDER BY id
            LIMIT 1000
        ) head
    ) q
    LEFT JOIN outbox.recheck r ON r.half_id = q.half_id
    WHERE q.round = coalesce(r.round, 1)
    UNION ALL
    SELECT h.half_id, h.producer_group_id, 0, h.prepared_at, h.prepared_at, h.prepared_at,
        coalesce(h.check_immunity_seconds, p.transaction_timeout_seconds)
    FROM (
        SELECT half_id, producer_group_id, prepared_at, check_immunity_seconds FROM outbox.half_message
        WHERE half_id > coalesce((SELECT position FROM outbox.progress WHERE name = 'sweep'), 0)
            AND half_id < (SELECT outbox.watermark() << 15)
        ORDER BY half_id
        LIMIT 1000
    ) h
    JOIN policy p ON p.id = h.producer_group_id
), late AS MATERIALIZED (
    SELECT p.id, p.name, p.asked, p.bound, w.half_id, w.check_count, due.at, p.asked AND w.check_count >= p.check_max AS checked,
        greatest(due.at, make_interval(secs => p.max_age_seconds) + CASE WHEN p.asked THEN w.age_from ELSE w.newest END) AS aged_at
    FROM waiting w
    JOIN policy p ON p.id = w.producer_group_id
    CROSS JOIN LATERAL (SELECT w.due_at + make_interval(secs => w.immunity) AS at) due
    WHERE due.at < p.bound
        AND NOT EXISTS (SELECT FROM outbox.op_message o WHERE o.half_id = w.half_id)
        AND NOT EXISTS (SELECT FROM outbox.parked_message k WHERE k.half_id = w.half_id AND k.resumed_at IS NULL)
)
SELECT 'STUCK_HALF' AS finding_class, l.name AS producer_group, l.half_id, h.nonce, t.name AS topic, jsonb_build_object(
    'end_demanded_by', CASE WHEN l.checked THEN 'check_max' ELSE 'max_age' END,
    'end_due_at', CASE WHEN l.checked THEN l.at ELSE l.aged_at END, 'checks_spent', l.check_count,
    'last_outcome', (SELECT outcome FROM outbox.check_attempt WHERE half_id = l.half_id ORDER BY look_id DESC LIMIT 1)) AS detail
FROM late l
CROSS JOIN LATERAL (SELECT nonce, topic_id FROM outbox.half_message WHERE half_id = l.half_id) h
JOIN outbox.topic t ON t.id = h.topic_id
WHERE l.checked OR l.aged_at < l.bound
UNION ALL
SELECT 'CHECK_SILENT', l.name, NULL, NULL, NULL, jsonb_build_object('due_since', min(l.at),
    'last_heartbeat_at', (SELECT updated_at FROM outbox.progress WHERE name = 'heartbeat:check'))
FROM late l
WHERE l.asked
GROUP BY l.id, l.name, l.bound
HAVING NOT EXISTS (
    SELECT FROM outbox.check_attempt a
    JOIN outbox.half_message h ON h.half_id = a.half_id
    WHERE a.asked_at > l.bound AND a.asked_at <= %(at)s + interval '2 minutes' AND h.producer_group_id = l.id)
ORDER BY finding_class DESC, half_id, producer_group

-- name: transactions
-- Reads the session that the snapshot's xmin belongs to, if its transaction began more than five minutes before the
-- snapshot.
SELECT 'XMIN_STALLED' AS finding_class, jsonb_build_object('pid', pid, 'application', application_name, 'state', state,
    'begun_at', xact_start, 'query_start', query_start) AS detail
FROM pg_stat_activity
WHERE backend_xid = pg_snapshot_xmin(pg_current_snapshot())::xid AND xact_start < %(at)s - interval '5 minutes'
