-- name: unnamed
-- Reads ids whose records were not searched yet, in the order in which they were found. Scans a small table.
SELECT half_id, nonce, shard, manifest_offset FROM outbox.already_published
WHERE producer_group IS NULL
ORDER BY found_at, half_id, nonce
LIMIT %(limit)s

-- name: note
-- Writes the names from the headers of a record. The group '' is no valid name: it means that the record is gone.
UPDATE outbox.already_published SET producer_group = %(producer_group)s, transaction_id = %(transaction_id)s
WHERE half_id = %(half_id)s AND nonce = %(nonce)s
