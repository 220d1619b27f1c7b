-- name: hold
-- Takes the chain for as long as this session lasts, unless another one has it; how long it is idle does not matter.
SELECT pg_try_advisory_lock(hashtext('outbox.reconciliation_cut')), set_config('idle_session_timeout', '0', false)

-- name: chain
-- Reads where the run before ended.
SELECT run_id, cut FROM outbox.reconciliation_cut WHERE source = ''

-- name: carried
-- Reads all that the run before left open.
SELECT side, half_id, facts FROM outbox.reconciliation_carry

-- name: move
-- Moves the cut, if it still is where this run began, or where this very run had put it; locks the one row.
INSERT INTO outbox.reconciliation_cut AS known (source, run_id, cut) VALUES ('', %(run_id)s, %(cut)s)
ON CONFLICT (source) DO UPDATE SET run_id = excluded.run_id, cut = excluded.cut
WHERE known.run_id IS NOT DISTINCT FROM %(after)s OR known.run_id = excluded.run_id

-- name: moved_by
-- Reads which run moved the cut last; locks the one row, so that no run moves it before this transaction ends.
SELECT run_id FROM outbox.reconciliation_cut WHERE source = '' FOR UPDATE

-- name: forget_carried
-- Deletes what the run before had left open.
DELETE FROM outbox.reconciliation_carry

-- name: carry
-- Writes what this run leaves open.
COPY outbox.reconciliation_carry (side, half_id, facts) FROM STDIN

-- name: note
-- Tells retirement how far a shard is audited.
SELECT outbox.note_reconciled(%(shard)s::int4, %(xid)s::int8, %(n)s::int4)
