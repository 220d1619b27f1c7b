-- name: server
-- Reads which installation of PostgreSQL this is, and whether it is a standby.
SELECT system_identifier::text, pg_is_in_recovery() FROM pg_control_system()

-- name: written
-- Reads on the primary its log position, which includes all that was committed, and its time.
SELECT pg_current_wal_lsn()::text, clock_timestamp()

-- name: replayed
-- Reads on the standby its replay position, and whether that reaches the given position.
SELECT pg_last_wal_replay_lsn()::text, pg_last_wal_replay_lsn() >= %(place)s::pg_lsn

-- name: holds
-- Reads on the primary whether its own log reaches the given position.
SELECT pg_current_wal_lsn() >= %(place)s::pg_lsn
