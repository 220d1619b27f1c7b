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
