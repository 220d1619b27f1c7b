-- name: try_lock
-- Asks for the shard's lock without waiting. The session has it until it ends.
SELECT pg_try_advisory_lock(%(space)s, %(shard)s)

-- name: hold_shards
-- Takes the lock of each shard for this transaction; returns the shards whose relay has it.
SELECT shard FROM generate_series(0, 15) AS s (shard) WHERE NOT pg_try_advisory_xact_lock(%(space)s, shard)
