-- name: confirm_what_was_read
-- Reads one setting. Where a standby is synchronous, writes an empty log record, whose commit waits for all
-- earlier log. Locks nothing.
SELECT pg_logical_emit_message(true, 'outbox', '') WHERE current_setting('synchronous_standby_names') <> ''
