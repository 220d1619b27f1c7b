-- name: claim_transaction_ids
-- Writes one transaction_key row for each new id and returns the half ids that won. Waits for a concurrent
-- transaction that writes the same id. The ids are sorted, so that two flushes cannot deadlock.
INSERT INTO outbox.transaction_key (producer_group_id, transaction_id, half_id)
SELECT g, t, h
FROM unnest(%(groups)s::int4[], %(transaction_ids)s::text[], %(half_ids)s::int8[]) AS asked (g, t, h)
ORDER BY g, t, h
ON CONFLICT DO NOTHING
RETURNING half_id

-- name: copy_halves
-- Appends the flush's rows to their leaf.
COPY outbox.half_message (
    half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id, "partition",
    check_immunity_seconds, transaction_id, key, value, headers, content_type, traceparent, tags, key_id)
FROM STDIN (FORMAT BINARY)
