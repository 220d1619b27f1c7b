-- name: begin_flush
-- Takes this transaction's xid, which orders the flush (O5), and reads the database's time. Locks nothing.
SELECT outbox.current_xid(), clock_timestamp()

-- name: find_transaction_ids
-- Reads, by key, which halves the given transaction ids belong to.
SELECT k.producer_group_id, k.transaction_id, k.half_id
FROM unnest(%(groups)s::int4[], %(transaction_ids)s::text[]) AS asked (g, t)
JOIN outbox.transaction_key k ON k.producer_group_id = asked.g AND k.transaction_id = asked.t

-- name: read_halves
-- Reads stored halves by key, from the leaf or the parked copy, with their names. The bounds prune leaves.
SELECT h.half_id, h.nonce, h.prepared_at, h.content_digest, h.producer_group_id, g.name AS producer_group,
    h.topic_id, t.name AS topic, h."partition", h.check_immunity_seconds, h.transaction_id, h.key, h.value,
    h.headers, h.content_type, h.traceparent, h.tags, h.key_id
FROM (
    SELECT half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id, "partition",
        check_immunity_seconds, transaction_id, key, value, headers, content_type, traceparent, tags, key_id
    FROM outbox.half_message
    WHERE half_id = ANY (%(half_ids)s::int8[]) AND half_id BETWEEN %(low)s AND %(high)s
    UNION
    SELECT half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id, "partition",
        check_immunity_seconds, transaction_id, key, value, headers, content_type, traceparent, tags, key_id
    FROM outbox.parked_message
    WHERE half_id = ANY (%(half_ids)s::int8[])
) h
JOIN outbox.producer_group g ON g.id = h.producer_group_id
JOIN outbox.topic t ON t.id = h.topic_id
