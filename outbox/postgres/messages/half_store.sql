-- name: find_transaction_ids
-- Reads, by key, which halves the given transaction ids belong to.
SELECT k.producer_group_id, k.transaction_id, k.half_id
FROM unnest(%(groups)s::int4[], %(transaction_ids)s::text[]) AS asked (g, t)
JOIN outbox.transaction_key k ON k.producer_group_id = asked.g AND k.transaction_id = asked.t

-- name: forget_transaction_id
-- Deletes, by key, the transaction id of a half that is not stored any more. Locks that row.
DELETE FROM outbox.transaction_key
WHERE producer_group_id = %(group)s AND transaction_id = %(transaction_id)s AND half_id = %(half_id)s
