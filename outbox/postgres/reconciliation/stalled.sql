-- name: parked
-- Counts per group the parked halves that nobody has ended, by the index on parked halves that were not resumed.
SELECT g.name AS producer_group, sum(r.n)::int AS halves, min(r.oldest) AS oldest_parked_at,
    jsonb_object_agg(r.parked_reason, r.n) AS reasons
FROM (
    SELECT p.producer_group_id, p.parked_reason, count(*) AS n, min(p.parked_at) AS oldest
    FROM outbox.parked_message p
    WHERE p.resumed_at IS NULL AND NOT EXISTS (SELECT FROM outbox.op_message o WHERE o.half_id = p.half_id)
    GROUP BY 1, 2
) r
JOIN outbox.producer_group g ON g.id = r.producer_group_id
GROUP BY g.name
ORDER BY g.name

-- name: halves
-- Reads the oldest thousand rows of each delay class after its cursor, and the oldest thousand halves after the cursor
-- of the sweep. Returns those whose end was due two intervals (of half a minute or more) before the snapshot. The halves
-- of a group that cannot be asked (paused, deleted, its breaker open) end by age only, in the order of their class.
WITH late AS MATERIALIZED (
    SELECT id, name, CASE WHEN paused OR deleted_at IS NOT NULL
            OR EXISTS (SELECT FROM outbox.check_breaker b WHERE b.producer_group_id = id)
        THEN NULL ELSE check_max END AS check_max,
        make_interval(secs => max_age_seconds) AS max_age,
        %(at)s - 2 * make_interval(secs => greatest(check_interval_seconds, 30)) AS bound
    FROM outbox.producer_group
), waiting AS (
    SELECT q.half_id, l.name, q.check_count,
        CASE WHEN q.check_count >= l.check_max THEN 'check_max' ELSE 'max_age' END AS reason,
        CASE WHEN q.check_count >= l.check_max THEN q.due_at ELSE greatest(q.due_at, l.max_age + CASE WHEN l.check_max IS NULL THEN q.newest ELSE q.age_from END) END AS due_at,
        l.bound
    FROM outbox.check_class c
    JOIN late l ON l.id = c.producer_group_id
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
    SELECT h.half_id, l.name, 0, 'max_age', h.prepared_at + l.max_age, l.bound
    FROM (
        SELECT half_id, producer_group_id, prepared_at FROM outbox.half_message
        WHERE half_id > coalesce((SELECT position FROM outbox.progress WHERE name = 'sweep'), 0)
            AND half_id < (SELECT outbox.watermark() << 15)
        ORDER BY half_id
        LIMIT 1000
    ) h
    JOIN late l ON l.id = h.producer_group_id
)
SELECT w.half_id, h.nonce, w.name AS producer_group, t.name AS topic, w.reason, w.check_count, w.due_at, a.outcome AS last_outcome
FROM waiting w
CROSS JOIN LATERAL (SELECT nonce, topic_id FROM outbox.half_message WHERE half_id = w.half_id) h
JOIN outbox.topic t ON t.id = h.topic_id
LEFT JOIN LATERAL (
    SELECT outcome FROM outbox.check_attempt WHERE half_id = w.half_id ORDER BY look_id DESC LIMIT 1
) a ON true
WHERE w.due_at < w.bound
    AND NOT EXISTS (SELECT FROM outbox.op_message o WHERE o.half_id = w.half_id)
    AND NOT EXISTS (SELECT FROM outbox.parked_message p WHERE p.half_id = w.half_id AND p.resumed_at IS NULL)
ORDER BY w.half_id

-- name: silent
-- Reads the groups with an undecided half that has been due for two intervals (of half a minute or more). Such a group
-- is not paused, has no open breaker, and had no check attempt since. The last test reads all check attempts, but only
-- for a group that meets the other conditions.
WITH late AS MATERIALIZED (
    SELECT g.id, g.name, g.transaction_timeout_seconds,
        %(at)s - 2 * make_interval(secs => greatest(g.check_interval_seconds, 30)) AS bound
    FROM outbox.producer_group g
    WHERE NOT g.paused AND g.deleted_at IS NULL
        AND NOT EXISTS (SELECT FROM outbox.check_breaker b WHERE b.producer_group_id = g.id)
), due AS MATERIALIZED (
    SELECT l.id, min(w.due_at) AS due_since
    FROM late l
    CROSS JOIN LATERAL (
        SELECT q.half_id, q.due_at
        FROM outbox.check_class c
        CROSS JOIN LATERAL (
            SELECT half_id, due_at FROM outbox.check_queue
            WHERE producer_group_id = c.producer_group_id AND delay_seconds = c.delay_seconds AND id > c.position AND id < (SELECT outbox.watermark() << 15)
            ORDER BY id
            LIMIT 100
        ) q
        WHERE c.producer_group_id = l.id
        UNION ALL
        SELECT h.half_id, h.prepared_at + make_interval(secs => coalesce(h.check_immunity_seconds, l.transaction_timeout_seconds))
        FROM (
            SELECT half_id, producer_group_id, prepared_at, check_immunity_seconds FROM outbox.half_message
            WHERE half_id > coalesce((SELECT position FROM outbox.progress WHERE name = 'sweep'), 0)
                AND half_id < (SELECT outbox.watermark() << 15)
            ORDER BY half_id
            LIMIT 1000
        ) h
        WHERE h.producer_group_id = l.id
    ) w
    WHERE w.due_at < l.bound
        AND NOT EXISTS (SELECT FROM outbox.op_message o WHERE o.half_id = w.half_id)
        AND NOT EXISTS (SELECT FROM outbox.parked_message p WHERE p.half_id = w.half_id AND p.resumed_at IS NULL)
    GROUP BY l.id
)
SELECT l.name AS producer_group, due.due_since,
    coalesce((SELECT jsonb_object_agg(c.delay_seconds, c.position) FROM outbox.check_class c
              WHERE c.producer_group_id = l.id), '{}') AS positions,
    (SELECT updated_at FROM outbox.progress WHERE name = 'heartbeat:check') AS last_heartbeat_at
FROM late l
JOIN due ON due.id = l.id
WHERE NOT EXISTS (
    SELECT FROM outbox.check_attempt a
    JOIN outbox.half_message h ON h.half_id = a.half_id
    WHERE a.asked_at > l.bound AND a.asked_at <= %(at)s + interval '2 minutes' AND h.producer_group_id = l.id)
ORDER BY l.name

-- name: transactions
-- Reads the session that the snapshot's xmin belongs to, if its transaction began more than five minutes before the
-- snapshot.
SELECT pid, application_name AS application, state, xact_start AS begun_at, query_start
FROM pg_stat_activity
WHERE backend_xid = pg_snapshot_xmin(pg_current_snapshot())::xid AND xact_start < %(at)s - interval '5 minutes'
