-- name: save_run
-- Writes the run, unless it is stored already. Runs are ordered by the time they finished, so it is after that of every
-- other run, even if the clock has been set back.
INSERT INTO outbox.reconciliation_run (
    run_id, previous_run_id, mode, started_at, cut_at, finished_at, verdict, sentence, plan, totals)
SELECT %(run_id)s, %(previous_run_id)s, %(mode)s, %(started_at)s, %(cut_at)s,
    greatest(clock_timestamp(), max(finished_at) + interval '1 microsecond'),
    %(verdict)s, %(sentence)s, %(plan)s, %(totals)s
FROM outbox.reconciliation_run
ON CONFLICT DO NOTHING

-- name: save_report
-- Writes the report in one format, unless it is stored already.
INSERT INTO outbox.reconciliation_report (run_id, format, body) VALUES (%(run_id)s, %(format)s, %(body)s)
ON CONFLICT DO NOTHING

-- name: delete_old_reports
-- Deletes all reports except those of the last 30 runs.
DELETE FROM outbox.reconciliation_report WHERE run_id NOT IN (
    SELECT run_id FROM outbox.reconciliation_run ORDER BY finished_at DESC LIMIT 30)

-- name: lock_runs
-- Takes the lock of the runs until this session ends, unless another session has it. This one may be idle
-- for any time. Reads, too, whether the sessions of this role may write.
SELECT pg_try_advisory_lock(hashtext('outbox.reconciliation_cut')),
    set_config('idle_session_timeout', '0', false), current_setting('transaction_read_only') = 'on'

-- name: checkpoint
-- Reads where the previous run ended.
SELECT run_id, cut FROM outbox.reconciliation_cut WHERE source = ''

-- name: update_cut
-- Replaces the cut, if it is the one that this run continued, or one that this run stored before. Locks the one row.
INSERT INTO outbox.reconciliation_cut AS known (source, run_id, cut) VALUES ('', %(run_id)s, %(cut)s)
ON CONFLICT (source) DO UPDATE SET run_id = excluded.run_id, cut = excluded.cut
WHERE known.run_id IS NOT DISTINCT FROM %(after)s OR known.run_id = excluded.run_id

-- name: note_audited
-- Records the position up to which a shard is audited; retirement reads it.
SELECT outbox.note_reconciled(%(shard)s::int4, %(xid)s::int8, %(n)s::int4)
