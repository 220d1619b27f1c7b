-- name: end
-- Decides those of the given halves that exist, belong to the caller and have no op. Appends the op messages of each
-- and of its followers and, for each shard, one commit_log row with the committed ids in order of arrival. Each half and
-- op is looked up by key: LATERAL … OFFSET 0 prevents a range scan. No follower is decided by its own id. Inserts are
-- sorted by id. A unique violation means that
-- another process has just decided one of them. "IN … IS TRUE" is hashed; the planner would expect one row from a
-- join here, and the cost would grow with the square of the batch. What is the same for all comes once, and its array
-- is null: usually only the ids and the random bits differ.
WITH flush AS MATERIALIZED (
    SELECT outbox.current_xid() AS xid, clock_timestamp() AS at
), open AS MATERIALIZED (
    SELECT DISTINCT ON (h.half_id) h.*, asked.decision, asked.decided_by, asked.reason, asked.actor, asked.place
    FROM (SELECT half_id, nonce, coalesce(a_caller, %(caller)s::int4) AS caller,
            coalesce(a_decision, %(decision)s::int2) AS decision,
            coalesce(a_decider, %(decided_by)s::int2) AS decided_by, reason, actor, transaction_id, place
        FROM unnest(
            %(half_ids)s::int8[], %(nonces)s::int8[], %(callers)s::int4[], %(decisions)s::int2[],
            %(deciders)s::int2[], %(reasons)s::text[], %(actors)s::text[], %(transaction_ids)s::text[]
        ) WITH ORDINALITY AS each (
            half_id, nonce, a_caller, a_decision, a_decider, reason, actor, transaction_id, place)
    ) AS asked
    CROSS JOIN LATERAL (
        SELECT half_id, nonce, content_digest, producer_group_id, prepared_at, transaction_id, followers
        FROM outbox.half_message
        WHERE half_id = asked.half_id AND leader_id IS NULL AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
    ) h
    LEFT JOIN LATERAL (
        SELECT true AS ended FROM outbox.op_message
        WHERE half_id = asked.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
    ) o ON true
    WHERE h.nonce = asked.nonce AND o.ended IS NULL
        AND (asked.transaction_id IS NULL OR asked.transaction_id = h.transaction_id)
        AND (asked.caller IS NULL OR (asked.caller, h.producer_group_id) IN (
            SELECT caller, group_id
            FROM unnest(%(scope_callers)s::int4[], %(scope_groups)s::int4[]) AS scope (caller, group_id)))
    ORDER BY h.half_id, asked.place
), follower AS MATERIALIZED (
    SELECT h.half_id, h.content_digest, open.decision, open.decided_by, open.reason, open.actor, open.place
    FROM open
    CROSS JOIN LATERAL unnest(open.followers) AS each (half_id)
    CROSS JOIN LATERAL (
        SELECT half_id, content_digest FROM outbox.half_message
        WHERE half_id = each.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
    ) h
), member AS NOT MATERIALIZED (
    SELECT half_id, content_digest, decision, decided_by, reason, actor, place FROM open
    UNION ALL
    SELECT * FROM follower
), decided AS (
    INSERT INTO outbox.op_message (half_id, xid, decided_at, decision, decided_by, reason, actor)
    SELECT half_id, flush.xid, flush.at, decision, decided_by, reason, actor
    FROM member CROSS JOIN flush
    ORDER BY half_id
    {on_conflict}
    RETURNING half_id
), logged AS (
    INSERT INTO outbox.commit_log (shard, xid, committed_at, half_ids, content_digests, awaited)
    SELECT (half_id & 15)::int2, min(flush.xid), min(flush.at),
        array_agg(half_id ORDER BY place, half_id), array_agg(content_digest ORDER BY place, half_id), %(awaited)s::bool
    FROM member CROSS JOIN flush
    WHERE decision = 1 AND (half_id IN (SELECT half_id FROM decided)) IS TRUE
    GROUP BY half_id & 15
)
SELECT open.place, open.producer_group_id, open.prepared_at, flush.at
FROM open CROSS JOIN flush
WHERE (half_id IN (SELECT half_id FROM decided)) IS TRUE
