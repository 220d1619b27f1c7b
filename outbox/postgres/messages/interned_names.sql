-- name: groups
-- Reads registered groups by name, without their secrets, for the hot path.
SELECT id, name, check_url, check_interval_seconds, check_max, check_timeout_seconds,
    transaction_timeout_seconds, on_check_max, backoff, max_inflight, batch_check, check_payload, topics,
    max_age_seconds, paused, pause_reason, version, created_at, updated_at
FROM outbox.producer_group
WHERE name = ANY (%(asked)s::text[]) AND deleted_at IS NULL

-- name: group_names
-- Reads group names by id. A deleted group keeps its name, because its messages still have its id.
SELECT id, name FROM outbox.producer_group WHERE id = ANY (%(asked)s::int4[])

-- name: group_ids
-- Reads group ids by name. A deleted group keeps its id, because its messages still have it.
SELECT name, id FROM outbox.producer_group WHERE name = ANY (%(asked)s::text[])

-- name: topics
-- Reads the ids of known topics.
SELECT name, id FROM outbox.topic WHERE name = ANY (%(asked)s::text[])

-- name: intern_topics
-- Gives ids to new topics. A topic that another process has just interned keeps its id. Sorted, so that two
-- processes cannot deadlock.
INSERT INTO outbox.topic (name)
SELECT name FROM unnest(%(asked)s::text[]) AS asked (name) ORDER BY name
ON CONFLICT (name) DO NOTHING
RETURNING name, id
