-- name: server
-- Reads the server's version, the settings that the guarantees need, the database's encoding, the session's process and
-- the clock.
SELECT current_setting('server_version_num')::integer AS version, current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS full_page_writes,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('max_prepared_transactions')::integer AS prepared_transactions, pg_backend_pid() AS backend_pid,
    current_setting('server_encoding') AS encoding, extract(epoch FROM clock_timestamp())::float8 AS clock
