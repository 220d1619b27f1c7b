-- name: complete_settings
-- Sets what the options of a new session cannot. PGDATESTYLE and PGTZ of the environment take precedence over options.
-- The limit of transactions that is set for the other programs of this role, database or server is lifted; one in the
-- URL stays. PostgreSQL 17 and later know it: before, the option of a new session would be refused.
SELECT set_config(name, CASE name WHEN 'DateStyle' THEN 'ISO, MDY' WHEN 'TimeZone' THEN 'UTC' ELSE '0' END, false)
FROM pg_settings
WHERE name IN ('DateStyle', 'TimeZone') OR name = 'transaction_timeout' AND setting <> '0' AND source <> 'client'

-- name: without_settings
-- Reads what a commit of this session waits for, if the session has not got our settings. Returns no row otherwise.
SELECT current_setting('synchronous_commit')
WHERE current_setting('search_path') <> 'pg_catalog'
    OR current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')

-- name: still_open
-- Reads the sessions of the server. Which of these server processes still have a session of this program.
SELECT pid FROM pg_stat_activity
WHERE pid = ANY (%(pids)s) AND pid <> pg_backend_pid() AND application_name = current_setting('application_name')
