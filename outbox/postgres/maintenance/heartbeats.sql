-- name: beat
-- Writes the time of a task's heartbeat, by the database's clock.
INSERT INTO outbox.progress AS p (name, updated_at) VALUES ('heartbeat:' || %(task)s, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET updated_at = excluded.updated_at
