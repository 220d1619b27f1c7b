-- name: lock
-- Takes a session lock without waiting; returns whether the session has it.
SELECT pg_try_advisory_lock(hashtext(%(kind)s), %(number)s)

-- name: unlock
-- Frees a session lock.
SELECT pg_advisory_unlock(hashtext(%(kind)s), %(number)s)

-- name: beat
-- Does nothing: a session that runs statements is alive.
SELECT 1
