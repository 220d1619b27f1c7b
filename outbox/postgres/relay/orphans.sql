-- name: unnamed
-- Reads ids whose records were not searched yet, in the order in which they were found. Scans a small table.
SELECT half_id, nonce, shard, manifest_offset FROM outbox.already_published
WHERE producer_group IS NULL
ORDER BY found_at, half_id, nonce
LIMIT %(limit)s

-- name: topics
-- Reads every topic that a message of this installation was ever prepared for.
SELECT name FROM outbox.topic ORDER BY id

-- name: note
-- Writes the names from the headers of the records. The group '' is no valid name: it means that the record is
-- gone.
UPDATE outbox.already_published a SET producer_group = named.producer_group, transaction_id = named.transaction_id
FROM unnest(%(half_ids)s::int8[], %(nonces)s::int8[], %(groups)s::text[], %(transaction_ids)s::text[])
    AS named (half_id, nonce, producer_group, transaction_id)
WHERE a.half_id = named.half_id AND a.nonce = named.nonce
