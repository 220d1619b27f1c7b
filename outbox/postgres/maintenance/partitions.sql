-- name: create_leaves
-- Creates the current leaf and the given number of next ones, where missing; returns how many were missing.
SELECT outbox.create_leaves(%(count)s)

-- name: default_rows
-- Reads for each partitioned table whether its default leaf has rows.
SELECT EXISTS (SELECT FROM outbox.half_message_default) AS half_message,
    EXISTS (SELECT FROM outbox.op_message_default) AS op_message,
    EXISTS (SELECT FROM outbox.commit_log_default) AS commit_log,
    EXISTS (SELECT FROM outbox.publication_log_default) AS publication_log,
    EXISTS (SELECT FROM outbox.check_attempt_default) AS check_attempt
