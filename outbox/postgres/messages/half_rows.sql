-- name: copy_halves
-- Appends the flush's rows to their leaf.
COPY outbox.half_message (
    half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id, "partition",
    check_immunity_seconds, transaction_id, key, value, headers, content_type, traceparent, tags, key_id,
    followers, leader_id)
FROM STDIN (FORMAT BINARY)

-- name: read_halves
-- Reads stored halves by key, with their names. The bounds prune leaves.
SELECT * FROM outbox.named_half
WHERE half_id = ANY (%(half_ids)s::int8[]) AND half_id BETWEEN %(low)s AND %(high)s
