-- name: copy_halves
-- Appends the flush's rows to their leaf.
COPY outbox.half_message (
    half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id, "partition",
    check_immunity_seconds, transaction_id, key, value, headers, content_type, traceparent, tags, key_id)
FROM STDIN (FORMAT BINARY)

-- name: read_halves
-- Reads stored halves by key, with their names. The bounds prune leaves.
SELECT h.half_id, h.nonce, h.prepared_at, h.content_digest, h.producer_group_id, g.name AS producer_group,
    h.topic_id, t.name AS topic, h."partition", h.check_immunity_seconds, h.transaction_id, h.key, h.value,
    h.headers, h.content_type, h.traceparent, h.tags, h.key_id
FROM outbox.half_message h
JOIN outbox.producer_group g ON g.id = h.producer_group_id
JOIN outbox.topic t ON t.id = h.topic_id
WHERE h.half_id = ANY (%(half_ids)s::int8[]) AND h.half_id BETWEEN %(low)s AND %(high)s
