-- name: renew
-- Gives this database a new installation id; returns the old and the new one.
UPDATE outbox.installation SET installation_id = gen_random_uuid()
FROM (SELECT installation_id AS was FROM outbox.installation) AS before
RETURNING was, installation_id

-- name: halt_all
-- Halts every shard, also one without a row: no relay may continue where the original database publishes.
INSERT INTO outbox.progress (name, halt_reason, halt_detail, updated_at)
SELECT 'relay:' || shard, %(reason)s, 'the installation was renewed', clock_timestamp()
FROM generate_series(0, 15) AS s (shard)
ON CONFLICT (name) DO UPDATE SET
    halt_reason = EXCLUDED.halt_reason, halt_detail = EXCLUDED.halt_detail, updated_at = EXCLUDED.updated_at
