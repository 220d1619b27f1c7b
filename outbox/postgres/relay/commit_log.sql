-- name: installation
-- Reads the ids of this installation and of this PostgreSQL cluster.
SELECT installation_id, (SELECT system_identifier::text FROM pg_control_system()) FROM outbox.installation

-- name: progress
-- Reads the shard's row by key.
SELECT position, position_n, manifest_offset, batch_no, crc, gen, cluster_id, topic_id, pg_system_id, halt_reason
FROM outbox.progress WHERE name = %(name)s

-- name: leave_id
-- Writes the generation that begins the next transactional id, if the stored one is the caller's.
UPDATE outbox.progress SET gen = %(next)s
WHERE name = %(name)s AND gen = %(gen)s
RETURNING true

-- name: save_progress
-- Writes the shard's one row. Writes nothing if the stored row is ahead, belongs to a newer owner, is halted, or
-- already has the generation that begins here: each generation has one owner.
INSERT INTO outbox.progress AS p (name, position, position_n, manifest_offset, batch_no, crc, gen,
    cluster_id, topic_id, pg_system_id, owner, updated_at)
VALUES (%(name)s, %(xid)s, %(n)s, %(manifest_offset)s, %(batch_no)s, %(crc)s, %(gen)s,
    %(cluster_id)s, %(topic_id)s, %(pg_system_id)s, %(owner)s, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET
    position = EXCLUDED.position, position_n = EXCLUDED.position_n,
    manifest_offset = EXCLUDED.manifest_offset, batch_no = EXCLUDED.batch_no, crc = EXCLUDED.crc,
    gen = EXCLUDED.gen, cluster_id = EXCLUDED.cluster_id, topic_id = EXCLUDED.topic_id,
    pg_system_id = EXCLUDED.pg_system_id, owner = EXCLUDED.owner, updated_at = EXCLUDED.updated_at,
    halt_reason = NULL
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

-- name: try_lock
-- Asks for the shard's lock without waiting. The session has it until it ends.
SELECT pg_try_advisory_lock(%(space)s, %(shard)s)

-- name: hold_shards
-- Takes the lock of each shard for this transaction; returns the shards whose relay has it.
SELECT shard FROM generate_series(0, 15) AS s (shard) WHERE NOT pg_try_advisory_xact_lock(%(space)s, shard)

-- name: owns
-- Returns whether a generation is the stored one, and locks the row so that it stays so until the transaction
-- ends.
SELECT true FROM outbox.progress WHERE name = %(name)s AND gen = %(gen)s AND halt_reason IS NULL FOR UPDATE

-- name: hold
-- Stores messages of a range of the commit log as held: their halves are kept longer than their leaves. A record that is
-- already held is unchanged.
INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, key, topic_wide, xid, n, publish_error,
    attempts, next_attempt_at)
SELECT h.half_id, h.nonce, %(shard)s, h.topic_id, h.key, %(topic_wide)s, l.xid, l.n, %(error)s,
    %(attempts)s, clock_timestamp() + make_interval(secs => %(wait)s)
FROM (
    SELECT c.xid, i.half_id, i.n::integer AS n
    FROM outbox.commit_log c CROSS JOIN LATERAL unnest(c.half_ids) WITH ORDINALITY AS i (half_id, n)
    WHERE c.shard = %(shard)s AND c.xid BETWEEN %(from_xid)s AND %(to_xid)s
        AND i.half_id = ANY (%(half_ids)s::int8[])
) l
CROSS JOIN LATERAL (
    SELECT half_id, nonce, topic_id, key FROM outbox.half_message
    WHERE half_id = l.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
) h
ON CONFLICT (half_id) DO NOTHING

-- name: postpone
-- Counts one more refusal of a held record; the time until the next attempt doubles up to a limit. Its random bits are
-- those of its half, which may have been damaged when it was held and repaired since. If it is refused for
-- itself, its topic is not held as a whole any more: it is the first of the topic, and what was refused with all of the
-- topic would wait behind it for ever.
WITH refused AS (
    UPDATE outbox.held_record SET attempts = attempts + 1, publish_error = %(error)s, topic_wide = %(topic_wide)s,
        nonce = coalesce((SELECT h.nonce FROM outbox.half_message h WHERE h.half_id = %(half_id)s), nonce),
        next_attempt_at = clock_timestamp()
            + make_interval(secs => least(%(last)s, %(first)s * 2.0 ^ least(attempts, 16)))
    WHERE half_id = %(half_id)s AND released_at IS NULL AND dropped_at IS NULL
    RETURNING half_id, shard, coalesce(repair, '') AS redriven, topic_id
)
UPDATE outbox.held_record w SET topic_wide = false
FROM refused r
WHERE NOT %(topic_wide)s AND w.shard = r.shard AND coalesce(w.repair, '') = r.redriven AND w.topic_id = r.topic_id
    AND w.topic_wide AND w.half_id <> r.half_id AND w.released_at IS NULL AND w.dropped_at IS NULL

-- name: mark_published
-- Marks rows whose records Kafka has, each with its batch; a row that is already marked is unchanged.
UPDATE outbox.held_record r SET released_at = clock_timestamp(), release_batch_no = p.batch_no,
    released_partition = p."partition", released_offset = p."offset"
FROM unnest(%(batch_nos)s::int8[], %(half_ids)s::int8[], %(nonces)s::int8[], %(partitions)s::int4[], %(offsets)s::int8[])
    AS p (batch_no, half_id, nonce, "partition", "offset")
WHERE r.half_id = p.half_id AND r.nonce = p.nonce AND r.released_at IS NULL

-- name: note_published
-- Appends the ids of a manifest that Kafka has and this PostgreSQL may have lost.
INSERT INTO outbox.already_published (half_id, nonce, shard, manifest_offset)
SELECT half_id, nonce, %(shard)s, %(offset)s
FROM unnest(%(half_ids)s::int8[], %(nonces)s::int8[]) AS published (half_id, nonce)
ON CONFLICT DO NOTHING

-- name: leaders
-- Reads, by key, which messages are ended for the given ones: usually themselves. One that is not stored is left
-- out. In the order of the given ones.
SELECT leader.half_id, leader.nonce
FROM unnest(%(half_ids)s::int8[], %(nonces)s::int8[]) WITH ORDINALITY AS published (half_id, nonce, place)
CROSS JOIN LATERAL (
    SELECT nonce, leader_id FROM outbox.half_message
    WHERE half_id = published.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
) h
CROSS JOIN LATERAL (
    SELECT half_id, nonce FROM outbox.half_message
    WHERE half_id = coalesce(h.leader_id, published.half_id) AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
) leader
WHERE h.nonce = published.nonce
GROUP BY 1, 2 ORDER BY min(published.place)

-- name: audit_rolled_back
-- Appends an audit row for each id of a manifest that this PostgreSQL has rolled back: its record cannot be
-- withdrawn.
INSERT INTO outbox.audit_log (action, target, half_id, reason)
SELECT 'published_and_rolled_back', 'message', o.half_id, 'PostgreSQL lost its tail and decided anew'
FROM unnest(%(half_ids)s::int8[], %(nonces)s::int8[]) AS published (half_id, nonce)
CROSS JOIN LATERAL (
    SELECT nonce FROM outbox.half_message
    WHERE half_id = published.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
) h
JOIN outbox.op_message o ON o.half_id = published.half_id AND o.half_id BETWEEN %(low)s AND %(high)s
WHERE h.nonce = published.nonce AND o.decision = 2
RETURNING half_id
