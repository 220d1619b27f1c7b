-- name: all
-- Reads the stored view of every topic: a small table.
SELECT name, partitions, max_message_bytes, may_write, compacted FROM outbox.topic

-- name: store
-- Writes new views into the rows of their topics.
UPDATE outbox.topic t SET partitions = s.partitions, max_message_bytes = s.max_message_bytes,
    may_write = s.may_write, compacted = s.compacted
FROM unnest(%(names)s::text[], %(partitions)s::int4[], %(max_message_bytes)s::int4[], %(may_write)s::bool[],
    %(compacted)s::bool[]) AS s (name, partitions, max_message_bytes, may_write, compacted)
WHERE t.name = s.name

-- name: note_growth
-- Appends an audit row.
INSERT INTO outbox.audit_log (action, target, detail)
VALUES ('topic.grew', %(topic)s, jsonb_build_object('before', %(before)s::int4, 'after', %(after)s::int4))
