-- name: lock
-- Takes a session lock without waiting; returns whether the session has it.
SELECT pg_try_advisory_lock(hashtext(%(kind)s), %(number)s)

-- name: unlock
-- Frees a session lock.
SELECT pg_advisory_unlock(hashtext(%(kind)s), %(number)s)

-- name: only_strangers
-- Reads whether strangers alone have the lock: roles that may not write what its users write. Locks nothing.
SELECT outbox.only_strangers(%(kind)s, %(number)s, 'outbox.commit_log')

-- name: signs_of_life
-- Reads what the session that has the lock did last: all tasks of a process share it, so one that lives uses it all the
-- time. None if its role hides that. Locks nothing.
SELECT h.pid, session.backend_start, session.state_change
FROM outbox.lock_holder h CROSS JOIN LATERAL pg_stat_get_activity(h.pid) AS session
WHERE h.two_keys AND h.first_key = hashtext(%(kind)s)::int8 & 4294967295 AND h.second_key = %(number)s
    AND session.state = 'idle' AND outbox.may_insert(h.role, 'outbox.commit_log')
LIMIT 1

-- name: end_session
-- Ends a session, unless its process number has another owner by now.
SELECT pg_terminate_backend(session.pid) FROM pg_stat_get_activity(%(pid)s) AS session
WHERE session.backend_start = %(began)s
