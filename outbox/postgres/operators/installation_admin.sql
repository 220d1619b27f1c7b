-- name: hold_shards
-- Takes the lock of each shard for this transaction; returns the shards whose relay holds it.
SELECT shard FROM generate_series(0, 15) AS s (shard) WHERE NOT pg_try_advisory_xact_lock(%(space)s, shard)

-- name: renew
-- Gives this database an installation id of its own; returns the one before and the new one.
UPDATE outbox.installation SET installation_id = gen_random_uuid()
FROM (SELECT installation_id AS was FROM outbox.installation) AS before
RETURNING was, installation_id

-- name: halt_all
-- Halts every shard, also one that never had a row: no relay may go on where the original writes.
INSERT INTO outbox.progress (name, halt_reason, halt_detail, updated_at)
SELECT 'relay:' || shard, %(reason)s, 'the installation was renewed', clock_timestamp()
FROM generate_series(0, 15) AS s (shard)
ON CONFLICT (name) DO UPDATE SET
    halt_reason = EXCLUDED.halt_reason, halt_detail = EXCLUDED.halt_detail, updated_at = EXCLUDED.updated_at
