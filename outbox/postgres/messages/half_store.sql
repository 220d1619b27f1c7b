-- name: begin_flush
-- Takes this transaction's xid, which orders the flush (O5), and the database's time. Locks nothing.
SELECT outbox.current_xid(), clock_timestamp()

-- name: claim_transaction_ids
-- Writes one transaction_key row for each id not yet known and returns the half ids that won. Waits for
-- a concurrent twin to end; sorted, so that two flushes cannot wait for each other.
INSERT INTO outbox.transaction_key (producer_group_id, transaction_id, half_id)
SELECT g, t, h
FROM unnest(%(groups)s::int4[], %(transaction_ids)s::text[], %(half_ids)s::int8[]) AS asked (g, t, h)
ORDER BY g, t, h
ON CONFLICT DO NOTHING
RETURNING half_id

-- name: copy_halves
-- Appends the flush's rows to their leaf.
COPY outbox.half_message (
    half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id, "partition",
    check_immunity_seconds, transaction_id, key, value, headers, content_type, traceparent, tags, key_id)
FROM STDIN (FORMAT BINARY)

-- name: find_transaction_ids
-- Reads, by key, which halves the given transaction ids belong to.
SELECT k.producer_group_id, k.transaction_id, k.half_id
FROM unnest(%(groups)s::int4[], %(transaction_ids)s::text[]) AS asked (g, t)
JOIN outbox.transaction_key k ON k.producer_group_id = asked.g AND k.transaction_id = asked.t

-- name: read_halves
-- Reads stored halves by key, leaf or parked copy, with their names; the bounds prune leaves.
SELECT h.half_id, h.nonce, h.prepared_at, h.content_digest, h.producer_group_id, g.name AS producer_group,
    h.topic_id, t.name AS topic, h."partition", h.check_immunity_seconds, h.transaction_id, h.key, h.value,
    h.headers, h.content_type, h.traceparent, h.tags, h.key_id
FROM (
    SELECT half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id, "partition",
        check_immunity_seconds, transaction_id, key, value, headers, content_type, traceparent, tags, key_id
    FROM outbox.half_message
    WHERE half_id = ANY (%(half_ids)s::int8[]) AND half_id BETWEEN %(low)s AND %(high)s
    UNION
    SELECT half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id, "partition",
        check_immunity_seconds, transaction_id, key, value, headers, content_type, traceparent, tags, key_id
    FROM outbox.parked_message
    WHERE half_id = ANY (%(half_ids)s::int8[])
) h
JOIN outbox.producer_group g ON g.id = h.producer_group_id
JOIN outbox.topic t ON t.id = h.topic_id

-- name: end
-- Decides the asked halves that exist, belong to the caller and have no op: appends their op messages
-- and, for each shard, one commit_log row with the committed ids in order of arrival. Each half and op is
-- looked up by key (LATERAL … OFFSET 0 leaves the planner no range to scan); inserts are sorted by id. A
-- unique violation means that another process decided one of them just now. "IN … IS TRUE" is hashed; a
-- join here would be planned for one row and cost the square of the batch.
WITH flush AS MATERIALIZED (
    SELECT outbox.current_xid() AS xid, clock_timestamp() AS at
), open AS MATERIALIZED (
    SELECT DISTINCT ON (asked.half_id) asked.*, h.content_digest, h.producer_group_id, h.prepared_at
    FROM unnest(
        %(half_ids)s::int8[], %(nonces)s::int8[], %(callers)s::int4[], %(decisions)s::int2[],
        %(decided_by)s::int2[], %(reasons)s::text[], %(actors)s::text[], %(transaction_ids)s::text[]
    ) WITH ORDINALITY AS asked (half_id, nonce, caller, decision, decided_by, reason, actor, transaction_id, place)
    CROSS JOIN LATERAL (
        SELECT nonce, content_digest, producer_group_id, prepared_at, transaction_id FROM outbox.half_message
        WHERE half_id = asked.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
    ) h
    LEFT JOIN LATERAL (
        SELECT true AS standing FROM outbox.op_message
        WHERE half_id = asked.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
    ) o ON true
    WHERE h.nonce = asked.nonce AND o.standing IS NULL
        AND (asked.transaction_id IS NULL OR asked.transaction_id = h.transaction_id)
        AND (asked.caller IS NULL OR (asked.caller, h.producer_group_id) IN (
            SELECT caller, group_id
            FROM unnest(%(scope_callers)s::int4[], %(scope_groups)s::int4[]) AS scope (caller, group_id)))
    ORDER BY asked.half_id, asked.place
), decided AS (
    INSERT INTO outbox.op_message (half_id, xid, decided_at, decision, decided_by, reason, actor)
    SELECT half_id, flush.xid, flush.at, decision, decided_by, reason, actor
    FROM open CROSS JOIN flush
    ORDER BY half_id
    {on_conflict}
    RETURNING half_id
), logged AS (
    INSERT INTO outbox.commit_log (shard, xid, committed_at, half_ids, content_digests)
    SELECT (half_id & 15)::int2, min(flush.xid), min(flush.at),
        array_agg(half_id ORDER BY place), array_agg(content_digest ORDER BY place)
    FROM open CROSS JOIN flush
    WHERE decision = 1 AND (half_id IN (SELECT half_id FROM decided)) IS TRUE
    GROUP BY half_id & 15
)
SELECT open.place, open.producer_group_id, open.prepared_at, flush.at
FROM open CROSS JOIN flush
WHERE (half_id IN (SELECT half_id FROM decided)) IS TRUE

-- name: confirm_what_was_read
-- Reads one setting; writes an empty log record where a standby is synchronous, whose commit waits for all log before it. Locks nothing.
SELECT pg_logical_emit_message(true, 'outbox', '') WHERE current_setting('synchronous_standby_names') <> ''
