-- name: try_lock
-- Asks for the shard's lock without waiting. It lives as long as the session.
SELECT pg_try_advisory_lock(%(space)s, %(shard)s)

-- name: rival
-- Reads how far the shard's owner has come and whether final commits wait beyond that.
SELECT coalesce(p.position, 0), coalesce(p.position_n, 0), p.halt_reason IS NULL AND EXISTS (
    SELECT FROM outbox.commit_log
    WHERE shard = %(shard)s AND xid > coalesce(p.position, 0) AND xid < outbox.watermark())
FROM (SELECT) AS one LEFT JOIN outbox.progress p ON p.name = %(name)s

-- name: terminate_holder
-- Ends the session that holds the shard's lock in this database.
SELECT pg_terminate_backend(pid) FROM pg_locks
WHERE locktype = 'advisory' AND classid = %(space)s AND objid = %(shard)s AND objsubid = 2 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())

-- name: installation
-- Reads who this installation and this PostgreSQL cluster are.
SELECT installation_id, (SELECT system_identifier::text FROM pg_control_system()) FROM outbox.installation

-- name: now
-- Reads PostgreSQL's clock in seconds, the only one whose word is taken.
SELECT extract(epoch FROM clock_timestamp())::float8

-- name: progress
-- Reads the shard's row by key.
SELECT position, position_n, manifest_offset, batch_no, crc, gen, cluster_id, topic_id, pg_system_id, halt_reason
FROM outbox.progress WHERE name = %(name)s

-- name: save_progress
-- Writes the shard's one row; writes nothing when the stored one is ahead, of a newer owner, or halted, or of the
-- generation that begins here: each has one owner.
INSERT INTO outbox.progress AS p (name, position, position_n, manifest_offset, batch_no, crc, gen,
    cluster_id, topic_id, pg_system_id, owner, updated_at)
VALUES (%(name)s, %(position)s, %(position_n)s, %(manifest_offset)s, %(batch_no)s, %(crc)s, %(gen)s,
    %(cluster_id)s, %(topic_id)s, %(pg_system_id)s, %(owner)s, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET
    position = EXCLUDED.position, position_n = EXCLUDED.position_n,
    manifest_offset = EXCLUDED.manifest_offset, batch_no = EXCLUDED.batch_no, crc = EXCLUDED.crc,
    gen = EXCLUDED.gen, cluster_id = EXCLUDED.cluster_id, topic_id = EXCLUDED.topic_id,
    pg_system_id = EXCLUDED.pg_system_id, owner = EXCLUDED.owner, updated_at = EXCLUDED.updated_at,
    halt_reason = NULL, halt_detail = NULL
WHERE p.manifest_offset IS NULL
    OR (p.gen <= %(after_gen)s AND p.batch_no <= EXCLUDED.batch_no
        AND (p.halt_reason IS NULL OR p.halt_reason = 'replay_stuck'))
RETURNING true

-- name: save_publication
-- Appends where the records of one batch lie; a batch that is stored already stays as it is.
INSERT INTO outbox.publication_log (shard, to_xid, to_n, batch_no, from_xid, from_n, published_at,
    half_ids, partitions, offsets)
VALUES (%(shard)s, %(to_xid)s, %(to_n)s, %(batch_no)s, %(from_xid)s, %(from_n)s, clock_timestamp(),
    %(half_ids)b::int8[], %(partitions)b::int4[], %(offsets)b::int8[])
ON CONFLICT DO NOTHING

-- name: halt
-- Writes the reason into the shard's row, which is made if it is missing; a row that another owner has
-- made meanwhile is not missing.
INSERT INTO outbox.progress AS p (name, halt_reason, owner, updated_at)
VALUES (%(name)s, %(reason)s, %(owner)s, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET
    halt_reason = EXCLUDED.halt_reason, owner = EXCLUDED.owner, updated_at = EXCLUDED.updated_at
WHERE p.manifest_offset IS NULL OR EXCLUDED.halt_reason <> 'cursor_missing'

-- name: read_commits
-- Reads the shard's rows from a position on that are below the watermark, by key, in commit order. The
-- watermark belongs to the same snapshot: without it a lower xid could still commit and be passed. Their ages (s)
-- are by one clock, which both stamps are of.
SELECT xid, half_ids, extract(epoch FROM clock_timestamp() - committed_at)::float8 FROM outbox.commit_log
WHERE shard = %(shard)s AND xid >= %(xid)s AND xid < outbox.watermark()
ORDER BY xid
LIMIT %(rows)s

-- name: read_contents
-- Reads halves and who decided them by key, in key order, up to a sum of bytes and at least one; what
-- is parked or missing is not returned. The sub-select keeps 2 000 ids out of the planner's estimates.
SELECT half_id, nonce, decided_by, producer_group_id, transaction_id, topic_id, key, value, "partition",
    content_type, traceparent, headers, known
FROM (
    SELECT h.*, o.decided_by,
        (h.half_id, h.nonce) IN (
            SELECT half_id, nonce FROM outbox.already_published
            WHERE half_id BETWEEN %(low)s AND %(high)s) AS known,
        sum(coalesce(octet_length(h.value), 0)) OVER (ORDER BY h.half_id)
            - coalesce(octet_length(h.value), 0) AS bytes_before
    FROM (
        SELECT half_id, nonce, producer_group_id, transaction_id, topic_id, key, value, "partition",
            content_type, traceparent, headers
        FROM outbox.half_message
        WHERE half_id = ANY ((SELECT %(half_ids)b::int8[])::int8[]) AND half_id BETWEEN %(low)s AND %(high)s
    ) h
    JOIN (
        SELECT half_id, decided_by FROM outbox.op_message
        WHERE half_id = ANY ((SELECT %(half_ids)b::int8[])::int8[]) AND half_id BETWEEN %(low)s AND %(high)s
    ) o ON o.half_id = h.half_id
) AS contents
WHERE bytes_before < %(bytes)s

-- name: read_parked
-- Reads one committed message by key where its leaf is gone: the parked copy, in the same shape.
SELECT h.half_id, h.nonce, coalesce(o.decided_by, 1::int2), h.producer_group_id, h.transaction_id, h.topic_id,
    h.key, h.value, h."partition", h.content_type, h.traceparent, h.headers,
    EXISTS (SELECT FROM outbox.already_published a WHERE a.half_id = h.half_id AND a.nonce = h.nonce)
FROM outbox.parked_message h
LEFT JOIN outbox.op_message o ON o.half_id = h.half_id AND o.half_id BETWEEN %(half_id)s AND %(half_id)s
WHERE h.half_id = %(half_id)s

-- name: topic_names
-- Reads interned topic names by key.
SELECT id, name FROM outbox.topic WHERE id = ANY (%(ids)s)

-- name: group_names
-- Reads interned group names by key.
SELECT id, name FROM outbox.producer_group WHERE id = ANY (%(ids)s)

-- name: compare
-- Reads in one snapshot: whether a manifest's end is below the watermark, the ids of its range in the
-- commit log with their random bits (by key; bounds prune leaves), and which of its ids are held.
WITH ids AS MATERIALIZED (
    SELECT l.xid, i.half_id, i.n
    FROM outbox.commit_log l CROSS JOIN LATERAL unnest(l.half_ids) WITH ORDINALITY AS i (half_id, n)
    WHERE l.shard = %(shard)s AND l.xid BETWEEN %(from_xid)s AND %(to_xid)s
        AND (l.xid, i.n) > (%(from_xid)s::int8, %(from_n)s::int8)
        AND (l.xid, i.n) <= (%(to_xid)s::int8, %(to_n)s::int8)
), identified AS MATERIALIZED (
    SELECT ids.*, coalesce(h.nonce, p.nonce, -1) AS nonce
    FROM ids
    LEFT JOIN LATERAL (
        SELECT nonce FROM outbox.half_message
        WHERE half_id = ids.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
    ) h ON true
    LEFT JOIN outbox.parked_message p ON p.half_id = ids.half_id
)
SELECT %(to_xid)s < outbox.watermark(),
    (SELECT array_agg(half_id ORDER BY xid, n) FROM identified),
    (SELECT array_agg(nonce ORDER BY xid, n) FROM identified),
    (SELECT array_agg(half_id) FROM outbox.held_record WHERE half_id = ANY (%(held)s::int8[])),
    (SELECT array_agg(nonce) FROM outbox.held_record WHERE half_id = ANY (%(held)s::int8[]))

-- name: note_published
-- Appends the ids of a manifest that Kafka has and this PostgreSQL may not know in their place.
INSERT INTO outbox.already_published (half_id, nonce, shard, manifest_offset)
SELECT half_id, nonce, %(shard)s, %(offset)s
FROM unnest(%(half_ids)s::int8[], %(nonces)s::int8[]) AS published (half_id, nonce)
ON CONFLICT DO NOTHING

-- name: recover_commits
-- Commits those of a manifest's halves that exist and have no op: appends ops and one commit_log row. No
-- guess: Kafka has the records, so the decision had been given and acted on.
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
        SELECT true AS standing FROM outbox.op_message
        WHERE half_id = published.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
    ) o ON true
    WHERE h.nonce = published.nonce AND o.standing IS NULL
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
-- Notes each id of a manifest that this PostgreSQL has rolled back: its record cannot be called back.
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

-- name: watermark
-- Reads the watermark alone: as long as it stands, no commit has become final.
SELECT outbox.watermark()

-- name: fresh_shards
-- Reads which shards have commits between two watermarks: one index probe a shard and leaf.
SELECT DISTINCT shard FROM outbox.commit_log
WHERE shard = ANY ('{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}'::int2[]) AND xid >= %(low)s AND xid < %(high)s
