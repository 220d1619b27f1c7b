-- name: renew
-- Gives this database a new installation id; returns the old and the new one.
UPDATE outbox.installation SET installation_id = gen_random_uuid()
FROM (SELECT installation_id AS was FROM outbox.installation) AS before
RETURNING was, installation_id

-- name: halt_all
-- Halts every shard, also one without a row: no relay may continue where the original database publishes.
INSERT INTO outbox.progress (name, halt_reason, updated_at)
SELECT 'relay:' || shard, %(reason)s, clock_timestamp()
FROM generate_series(0, 15) AS s (shard)
ON CONFLICT (name) DO UPDATE SET halt_reason = EXCLUDED.halt_reason, updated_at = EXCLUDED.updated_at

-- name: sessions
-- Reads the names of our programs that have a session in this database, this one excepted.
SELECT DISTINCT application_name FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'outbox-%'
ORDER BY application_name

-- name: close
-- Locks the table of the base against every reader of the base: waits two seconds for transactions that have taken an
-- id, and no other can take one before this transaction ends. Takes no xid.
SET LOCAL lock_timeout = '2s';
LOCK TABLE outbox.installation IN ACCESS EXCLUSIVE MODE

-- name: base
-- Reads what is added to transaction ids, and the highest id that only recovery or an audit has stored, both by what
-- Kafka holds: the last entry of an index, and the rows of progress.
SELECT base, coalesce(greatest(
    (SELECT max(half_id) >> 15 FROM outbox.already_published),
    (SELECT max(position) FROM outbox.progress WHERE starts_with(name, 'reconcile:'))), 0) AS seen_in_kafka
FROM outbox.installation

-- name: raise_counters
-- Raises the counters of generated keys above the stored keys: logical replication copies rows, not counters. Reads the
-- highest key of each table, by its index where it has one.
SELECT setval(counter::regclass, stored) FROM (
    SELECT pg_get_serial_sequence('outbox.topic', 'id') AS counter, max(id)::int8 AS stored FROM outbox.topic
    UNION ALL
    SELECT pg_get_serial_sequence('outbox.producer_group', 'id'), max(id) FROM outbox.producer_group
    UNION ALL
    SELECT pg_get_serial_sequence('outbox.audit_log', 'id'), max(id) FROM outbox.audit_log
    UNION ALL
    SELECT pg_get_serial_sequence('outbox.plain_message', 'place'), max(place) FROM outbox.plain_message
    UNION ALL
    SELECT pg_get_serial_sequence('outbox.reconciliation_finding_event', 'id'), max(id)
    FROM outbox.reconciliation_finding_event
) counters
WHERE stored > coalesce(pg_sequence_last_value(counter::regclass), 0)

-- name: rebase
-- Raises the base so that the next id is the first of a leaf; returns the old and the new base.
UPDATE outbox.installation SET base = greatest(base, (%(leaf)s::int8 << 20) - pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
FROM (SELECT base AS was FROM outbox.installation) AS before
RETURNING was, base

-- name: create_leaves
-- Creates the leaf of the next id and two more. Locks the default leaves for an instant.
SELECT outbox.create_leaf(leaf) FROM generate_series(%(leaf)s::int8, %(leaf)s::int8 + 2) AS leaf
