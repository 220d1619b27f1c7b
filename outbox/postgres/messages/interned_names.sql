-- name: groups
-- Reads registered groups by name, as the hot path needs them: without their secrets.
SELECT id, name, check_url, check_interval_seconds, check_max, check_timeout_seconds,
    transaction_timeout_seconds, on_check_max, backoff, max_inflight, batch_check, check_payload, topics,
    max_age_seconds, paused, pause_reason, version, created_at, updated_at
FROM outbox.producer_group
WHERE name = ANY (%(names)s::text[]) AND deleted_at IS NULL

-- name: group_names
-- Reads group names by id; a deleted group keeps its name, for its messages still carry its id.
SELECT id, name FROM outbox.producer_group WHERE id = ANY (%(ids)s::int4[])

-- name: topics
-- Reads the ids of known topics.
SELECT name, id FROM outbox.topic WHERE name = ANY (%(names)s::text[])

-- name: intern_topics
-- Gives ids to new topics; one that another process has just interned keeps its id. Sorted, so that two
-- processes cannot wait for each other.
INSERT INTO outbox.topic (name)
SELECT name FROM unnest(%(names)s::text[]) AS asked (name) ORDER BY name
ON CONFLICT (name) DO NOTHING
