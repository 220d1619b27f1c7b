-- name: uncopied
-- Reads the oldest parked messages, still undecided, that have no copy in the parked topic.
SELECT p.half_id, p.nonce, p.prepared_at, p.content_digest, p.producer_group_id, g.name AS producer_group,
    p.topic_id, t.name AS topic, p."partition", p.check_immunity_seconds, p.transaction_id, p.key, p.value,
    p.headers, p.content_type, p.traceparent, p.tags, p.key_id, p.parked_at, p.parked_reason, p.check_count,
    clock_timestamp() AS read_at
FROM outbox.parked_message p
JOIN outbox.producer_group g ON g.id = p.producer_group_id
JOIN outbox.topic t ON t.id = p.topic_id
LEFT JOIN LATERAL (
    SELECT true AS decided FROM outbox.op_message WHERE half_id = p.half_id OFFSET 0
) o ON true
WHERE p.copied_at IS NULL AND p.resumed_at IS NULL AND o.decided IS NULL
ORDER BY p.half_id
LIMIT %(limit)s

-- name: mark_copied
-- Records that the topic has them, except those that were parked again meanwhile: they are copied again.
UPDATE outbox.parked_message p SET copied_at = clock_timestamp()
FROM unnest(%(half_ids)s::int8[], %(parked)s::timestamptz[]) AS seen (half_id, parked_at)
WHERE p.half_id = seen.half_id AND p.parked_at = seen.parked_at
