-- name: limit_session
-- Sets the planner and the longest silence of a relay's session. It holds the shard's lock, and a relay that is frozen
-- must not keep it. A relay that works uses its session at least every 20 seconds.
SELECT set_config('enable_nestloop', 'off', false), set_config('idle_session_timeout', '30s', false),
    set_config('idle_in_transaction_session_timeout', '30s', false)

-- name: installation
-- Reads the ids of this installation and of this PostgreSQL cluster.
SELECT installation_id, (SELECT system_identifier::text FROM pg_control_system()) FROM outbox.installation

-- name: progress
-- Reads the shard's row by key.
SELECT position, position_n, manifest_offset, batch_no, crc, gen, cluster_id, topic_id, pg_system_id, halt_reason
FROM outbox.progress WHERE name = %(name)s

-- name: save_progress
-- Writes the shard's one row. Writes nothing if the stored row is ahead, belongs to a newer owner, is halted, or
-- already has the generation that begins here: each generation has one owner.
INSERT INTO outbox.progress AS p (name, position, position_n, manifest_offset, batch_no, crc, gen,
    cluster_id, topic_id, pg_system_id, owner, updated_at)
VALUES (%(name)s, %(position)s, %(position_n)s, %(manifest_offset)s, %(batch_no)s, %(crc)s, %(gen)s,
    %(cluster_id)s, %(topic_id)s, %(pg_system_id)s, %(owner)s, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET
    position = EXCLUDED.position, position_n = EXCLUDED.position_n,
    manifest_offset = EXCLUDED.manifest_offset, batch_no = EXCLUDED.batch_no, crc = EXCLUDED.crc,
    gen = EXCLUDED.gen, cluster_id = EXCLUDED.cluster_id, topic_id = EXCLUDED.topic_id,
    pg_system_id = EXCLUDED.pg_system_id, owner = EXCLUDED.owner, updated_at = EXCLUDED.updated_at,
    halt_reason = NULL, halt_detail = NULL
WHERE p.manifest_offset IS NULL
    OR (p.gen <= %(after_gen)s AND p.batch_no <= EXCLUDED.batch_no
        AND (p.halt_reason IS NULL OR p.halt_reason = 'replay_stuck'))
RETURNING true

-- name: save_publication
-- Appends the partitions and offsets of one batch; a batch that is already stored is unchanged.
INSERT INTO outbox.publication_log (shard, to_xid, to_n, batch_no, from_xid, from_n, published_at,
    half_ids, partitions, offsets)
VALUES (%(shard)s, %(to_xid)s, %(to_n)s, %(batch_no)s, %(from_xid)s, %(from_n)s, clock_timestamp(),
    %(half_ids)b::int8[], %(partitions)b::int4[], %(offsets)b::int8[])
ON CONFLICT DO NOTHING

-- name: halt
-- Writes the halt reason into the shard's row and creates the row if it is missing. A missing cursor is not stored
-- if another owner has created the row meanwhile.
INSERT INTO outbox.progress AS p (name, halt_reason, owner, updated_at)
VALUES (%(name)s, %(reason)s, %(owner)s, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET
    halt_reason = EXCLUDED.halt_reason, owner = EXCLUDED.owner, updated_at = EXCLUDED.updated_at
WHERE p.manifest_offset IS NULL OR EXCLUDED.halt_reason <> 'cursor_missing'

-- name: compare
-- Reads in one snapshot: whether a manifest's end is below the watermark, the ids of its range in the commit log
-- as message ids, NULL where the half is gone (by key; bounds prune leaves), and which of its ids are held.
WITH ids AS MATERIALIZED (
    SELECT l.xid, i.half_id, i.n
    FROM outbox.commit_log l CROSS JOIN LATERAL unnest(l.half_ids) WITH ORDINALITY AS i (half_id, n)
    WHERE l.shard = %(shard)s AND l.xid BETWEEN %(from_xid)s AND %(to_xid)s
        AND (l.xid, i.n) > (%(from_xid)s::int8, %(from_n)s::int8)
        AND (l.xid, i.n) <= (%(to_xid)s::int8, %(to_n)s::int8)
), identified AS MATERIALIZED (
    SELECT ids.*, outbox.message_id(ids.half_id, h.nonce) AS message_id
    FROM ids
    LEFT JOIN LATERAL (
        SELECT nonce FROM outbox.half_message
        WHERE half_id = ids.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
    ) h ON true
)
SELECT %(to_xid)s < outbox.watermark(),
    (SELECT array_agg(message_id ORDER BY xid, n) FROM identified),
    (SELECT array_agg(outbox.message_id(half_id, nonce)) FROM outbox.held_record WHERE half_id = ANY (%(held)s::int8[]))

-- name: try_lock
-- Asks for the shard's lock without waiting. The session has it until it ends.
SELECT pg_try_advisory_lock(%(space)s, %(shard)s)

-- name: hold_shards
-- Takes the lock of each shard for this transaction; returns the shards whose relay has it.
SELECT shard FROM generate_series(0, 15) AS s (shard) WHERE NOT pg_try_advisory_xact_lock(%(space)s, shard)
