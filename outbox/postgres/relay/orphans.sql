-- name: find
-- Reads, by key, messages that only Kafka has, with the group they were prepared for by its name of then: the
-- group's own row may have been lost with the message.
SELECT a.half_id, a.nonce, g.id AS producer_group_id, a.transaction_id, a.found_at
FROM unnest(%(half_ids)s::int8[], %(nonces)s::int8[]) AS asked (half_id, nonce)
JOIN outbox.already_published a ON a.half_id = asked.half_id AND a.nonce = asked.nonce
JOIN outbox.producer_group g ON g.name = a.producer_group

-- name: unnamed
-- Reads ids whose records were not yet looked for, in the order in which they were found. Scans a small table.
SELECT half_id, nonce, shard, manifest_offset FROM outbox.already_published
WHERE producer_group IS NULL
ORDER BY found_at, half_id, nonce
LIMIT %(limit)s

-- name: topics
-- Reads every topic that a message of this installation was ever prepared for.
SELECT name FROM outbox.topic ORDER BY id

-- name: note
-- Notes what the headers of the records say; '' is no group's name and says that the record is gone.
UPDATE outbox.already_published a SET producer_group = named.producer_group, transaction_id = named.transaction_id
FROM unnest(%(half_ids)s::int8[], %(nonces)s::int8[], %(groups)s::text[], %(transaction_ids)s::text[])
    AS named (half_id, nonce, producer_group, transaction_id)
WHERE a.half_id = named.half_id AND a.nonce = named.nonce
