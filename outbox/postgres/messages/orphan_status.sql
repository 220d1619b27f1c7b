-- name: find
-- Reads, by key, messages that only Kafka has, and finds their group by the name in their record: the group's own
-- row may have been lost with the message.
SELECT a.half_id, a.nonce, g.id AS producer_group_id, a.transaction_id, a.found_at
FROM unnest(%(half_ids)s::int8[], %(nonces)s::int8[]) AS asked (half_id, nonce)
JOIN outbox.already_published a ON a.half_id = asked.half_id AND a.nonce = asked.nonce
JOIN outbox.producer_group g ON g.name = a.producer_group
