-- name: server
-- Reads which installation of PostgreSQL this is, and whether it is a standby.
SELECT system_identifier::text, pg_is_in_recovery() FROM pg_control_system()

-- name: written
-- Reads on the primary up to where its log is written, what was committed included, and its time.
SELECT pg_current_wal_lsn()::text, clock_timestamp()

-- name: replayed
-- Reads on the standby up to where it has replayed the log, and whether that reaches a place.
SELECT pg_last_wal_replay_lsn()::text, pg_last_wal_replay_lsn() >= %(place)s::pg_lsn

-- name: holds
-- Reads on the primary whether its own log reaches a place.
SELECT pg_current_wal_lsn() >= %(place)s::pg_lsn
