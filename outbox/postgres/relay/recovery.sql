-- name: note_published
-- Appends the ids of a manifest that Kafka has and this PostgreSQL may have lost.
INSERT INTO outbox.already_published (half_id, nonce, shard, manifest_offset)
SELECT half_id, nonce, %(shard)s, %(offset)s
FROM unnest(%(half_ids)s::int8[], %(nonces)s::int8[]) AS published (half_id, nonce)
ON CONFLICT DO NOTHING

-- name: recover_commits
-- Commits those of a manifest's halves that exist and have no op: appends ops and one commit_log row. This is
-- certain: Kafka has the records, so the decision had been made and published.
WITH flush AS MATERIALIZED (
    SELECT outbox.current_xid() AS xid, clock_timestamp() AS at
), open AS MATERIALIZED (
    SELECT published.half_id, published.place, h.content_digest
    FROM unnest(%(half_ids)s::int8[], %(nonces)s::int8[]) WITH ORDINALITY AS published (half_id, nonce, place)
    CROSS JOIN LATERAL (
        SELECT nonce, content_digest FROM outbox.half_message
        WHERE half_id = published.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
    ) h
    LEFT JOIN LATERAL (
        SELECT true AS ended FROM outbox.op_message
        WHERE half_id = published.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
    ) o ON true
    WHERE h.nonce = published.nonce AND o.ended IS NULL
), decided AS (
    INSERT INTO outbox.op_message (half_id, xid, decided_at, decision, decided_by, reason)
    SELECT half_id, flush.xid, flush.at, 1, 5, 'its record was in Kafka'
    FROM open CROSS JOIN flush ORDER BY half_id
)
INSERT INTO outbox.commit_log (shard, xid, committed_at, half_ids, content_digests)
SELECT %(shard)s, min(flush.xid), min(flush.at), array_agg(half_id ORDER BY place),
    array_agg(content_digest ORDER BY place)
FROM open CROSS JOIN flush
HAVING count(*) > 0

-- name: audit_rolled_back
-- Appends an audit row for each id of a manifest that this PostgreSQL has rolled back: its record cannot be
-- withdrawn.
INSERT INTO outbox.audit_log (action, target, half_id, reason)
SELECT 'published_and_rolled_back', 'message', o.half_id, 'PostgreSQL lost its tail and decided anew'
FROM unnest(%(half_ids)s::int8[], %(nonces)s::int8[]) AS published (half_id, nonce)
CROSS JOIN LATERAL (
    SELECT nonce FROM outbox.half_message
    WHERE half_id = published.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
) h
JOIN outbox.op_message o ON o.half_id = published.half_id AND o.half_id BETWEEN %(low)s AND %(high)s
WHERE h.nonce = published.nonce AND o.decision = 2
RETURNING half_id
