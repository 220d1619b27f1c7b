-- name: limit
-- Lets PostgreSQL cancel each statement of this transaction that takes longer; the session goes on.
SELECT set_config('statement_timeout', %(milliseconds)s::text, true)

-- name: heartbeats
-- Reads, by key, the time of the last heartbeat of each task that must be alive; 0: it never ran, or not since the clock
-- was set back.
SELECT needed.chore, coalesce(extract(epoch FROM p.updated_at), 0)::float8 AS beaten_at
FROM unnest(ARRAY['relay', 'check', 'sweep', 'retire', 'leaves']) AS needed (chore)
LEFT JOIN outbox.progress p ON p.name = 'heartbeat:' || needed.chore
    AND p.updated_at <= clock_timestamp() + interval '1 minute'

-- name: failing
-- Reads for how long all checks of a group have failed, if a half still waits for one and the checks are not paused:
-- one look-up by key for each group that fails, and one index probe for each of its delay classes.
SELECT g.name AS producer_group, extract(epoch FROM clock_timestamp() - f.updated_at)::float8 AS seconds
FROM outbox.progress f
JOIN outbox.producer_group g ON g.id = substr(f.name, 9)::int4
WHERE f.name LIKE 'failing:%%' AND g.deleted_at IS NULL AND NOT g.paused AND EXISTS (
    SELECT FROM outbox.check_class c
    CROSS JOIN LATERAL (
        SELECT FROM outbox.check_queue
        WHERE producer_group_id = c.producer_group_id AND delay_seconds = c.delay_seconds AND id > c.position
        LIMIT 1
    ) q
    WHERE c.producer_group_id = g.id)

-- name: tables
-- Reads PostgreSQL's statistics of our tables, a partitioned one as the sum of its leaves: the estimated rows, and the
-- time of the last vacuum. Counts no row.
SELECT coalesce(parent.relname, s.relname)::text AS "table", sum(s.n_live_tup)::float8 AS live_rows,
    extract(epoch FROM max(greatest(s.last_vacuum, s.last_autovacuum)))::float8 AS vacuumed_at
FROM pg_stat_user_tables s
LEFT JOIN pg_inherits i ON i.inhrelid = s.relid
LEFT JOIN pg_class parent ON parent.oid = i.inhparent
WHERE s.schemaname = 'outbox'
GROUP BY 1
