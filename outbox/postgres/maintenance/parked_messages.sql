-- name: uncopied
-- Reads the oldest parked messages, still undecided, that have no copy in the parked topic.
SELECT h.*, p.parked_at, p.parked_reason, p.check_count, clock_timestamp() AS read_at
FROM outbox.parked_message p
CROSS JOIN LATERAL (SELECT * FROM outbox.named_half WHERE half_id = p.half_id OFFSET 0) h
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
