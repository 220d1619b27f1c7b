-- name: find_transaction_ids
-- Reads, by key, which halves the given transaction ids belong to.
SELECT k.producer_group_id, k.transaction_id, k.half_id
FROM unnest(%(groups)s::int4[], %(transaction_ids)s::text[]) AS asked (g, t)
JOIN outbox.transaction_key k ON k.producer_group_id = asked.g AND k.transaction_id = asked.t
