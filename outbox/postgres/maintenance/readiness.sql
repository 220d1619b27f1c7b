-- name: revision
-- Reads the newest applied migration.
SELECT version_num FROM outbox.alembic_version

-- name: tasks
-- Reads the heartbeats: one row per task of the checker.
SELECT substr(name, 11) AS task, extract(epoch FROM clock_timestamp() - updated_at)::float8 AS seconds_ago
FROM outbox.progress WHERE starts_with(name, 'heartbeat:') ORDER BY name
