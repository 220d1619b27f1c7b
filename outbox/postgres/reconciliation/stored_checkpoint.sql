-- name: lock_runs
-- Takes the lock of the runs until this session ends, unless another session has it. This one may be idle
-- for any time. Reads, too, whether the sessions of this role may write.
SELECT pg_try_advisory_lock(hashtext('outbox.reconciliation_cut')),
    set_config('idle_session_timeout', '0', false), current_setting('transaction_read_only') = 'on'

-- name: checkpoint
-- Reads where the previous run ended.
SELECT run_id, cut FROM outbox.reconciliation_cut WHERE source = ''

-- name: carried
-- Reads everything that the previous run left open.
SELECT side, half_id, facts FROM outbox.reconciliation_carry

-- name: update_cut
-- Replaces the cut, if it is the one that this run continued, or one that this run stored before. Locks the one row.
INSERT INTO outbox.reconciliation_cut AS known (source, run_id, cut) VALUES ('', %(run_id)s, %(cut)s)
ON CONFLICT (source) DO UPDATE SET run_id = excluded.run_id, cut = excluded.cut
WHERE known.run_id IS NOT DISTINCT FROM %(after)s OR known.run_id = excluded.run_id

-- name: cut_run_id
-- Reads which run stored the cut. Locks the one row, so that no run replaces it before this transaction ends.
SELECT run_id FROM outbox.reconciliation_cut WHERE source = '' FOR UPDATE

-- name: delete_carried
-- Deletes what the previous run left open.
DELETE FROM outbox.reconciliation_carry

-- name: carry
-- Writes what this run leaves open.
COPY outbox.reconciliation_carry (side, half_id, facts) FROM STDIN

-- name: note_audited
-- Records the position up to which a shard is audited; retirement reads it.
SELECT outbox.note_reconciled(%(shard)s::int4, %(xid)s::int8, %(n)s::int4)
