-- name: uncopied
-- Reads the oldest parked messages, still undecided, that have no copy in the parked topic.
SELECT h.half_id, h.nonce, h.prepared_at, h.content_digest, h.producer_group_id, g.name AS producer_group,
    h.topic_id, t.name AS topic, h."partition", h.check_immunity_seconds, h.transaction_id, h.key, h.value,
    h.headers, h.content_type, h.traceparent, h.tags, h.key_id, p.parked_at, p.parked_reason, p.check_count,
    clock_timestamp() AS read_at
FROM outbox.parked_message p
CROSS JOIN LATERAL (SELECT * FROM outbox.half_message WHERE half_id = p.half_id OFFSET 0) h
JOIN outbox.producer_group g ON g.id = h.producer_group_id
JOIN outbox.topic t ON t.id = h.topic_id
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
