-- name: find_transaction_ids
-- Reads, by key and in the order asked, which halves the given transaction ids belong to.
SELECT k.half_id
FROM unnest(%(groups)s::int4[], %(transaction_ids)s::text[]) WITH ORDINALITY AS asked (g, t, place)
LEFT JOIN outbox.transaction_key k ON k.producer_group_id = asked.g AND k.transaction_id = asked.t
ORDER BY asked.place
