-- name: topic_names
-- Reads interned topic names by key.
SELECT id, name FROM outbox.topic WHERE id = ANY (%(ids)s)

-- name: group_names
-- Reads interned group names by key.
SELECT id, name FROM outbox.producer_group WHERE id = ANY (%(ids)s)
