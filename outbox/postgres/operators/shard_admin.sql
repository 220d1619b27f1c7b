-- name: mark_released
-- Marks held records that later batches than a given one published; a row that is already marked is unchanged.
UPDATE outbox.held_record r SET released_at = clock_timestamp(), release_batch_no = p.batch_no
FROM unnest(%(batch_nos)s::int8[], %(half_ids)s::int8[], %(nonces)s::int8[]) AS p (batch_no, half_id, nonce)
WHERE r.half_id = p.half_id AND r.nonce = p.nonce AND r.released_at IS NULL AND p.batch_no > %(known)s::int8

-- name: settle
-- Ends the halt of a shard, if it is still halted for the given reason. The new generation prevents a relay of an
-- older one from writing this row. Values that are NULL are unchanged.
UPDATE outbox.progress SET
    manifest_offset = coalesce(%(manifest_offset)s, manifest_offset),
    batch_no = coalesce(%(batch_no)s, batch_no), crc = coalesce(%(crc)s, crc), gen = coalesce(%(gen)s, gen),
    cluster_id = coalesce(%(cluster_id)s, cluster_id), topic_id = coalesce(%(topic_id)s, topic_id),
    pg_system_id = coalesce(%(pg_system_id)s, pg_system_id),
    halt_reason = NULL, updated_at = clock_timestamp()
WHERE name = %(name)s AND halt_reason = %(halt_reason)s
RETURNING true
