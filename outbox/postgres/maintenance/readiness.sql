-- name: state
-- Reads the newest applied migration, and which of the tasks have no heartbeat that is new enough. One that is as far
-- ahead is from before the clock was set back.
SELECT (SELECT version_num FROM outbox.alembic_version), ARRAY(
    SELECT needed.task
    FROM unnest(%(tasks)s::text[]) WITH ORDINALITY AS needed (task, place)
    LEFT JOIN outbox.progress p ON p.name = 'heartbeat:' || needed.task
        AND p.updated_at >= clock_timestamp() - make_interval(secs => %(silent_after)s)
        AND p.updated_at <= clock_timestamp() + make_interval(secs => %(silent_after)s)
    WHERE p.name IS NULL
    ORDER BY needed.place)
