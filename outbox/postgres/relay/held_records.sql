-- name: owns
-- Returns whether a generation is the stored one, and locks the row so that it stays so until the transaction
-- ends.
SELECT true FROM outbox.progress WHERE name = %(name)s AND gen = %(gen)s AND halt_reason IS NULL FOR UPDATE

-- name: hold
-- Stores messages of a range of the commit log as held, with all that their records need, so that they are kept
-- longer than their leaves. A record that is already held is unchanged.
INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, key, topic_wide, xid, n, publish_error,
    attempts, next_attempt_at, payload)
SELECT h.half_id, h.nonce, %(shard)s, h.topic_id, h.key, %(topic_wide)s, l.xid, l.n, %(error)s,
    %(attempts)s, clock_timestamp() + make_interval(secs => %(wait)s),
    jsonb_build_object('producer_group', g.name, 'transaction_id', h.transaction_id, 'decided_by',
        coalesce(o.decided_by, 1), 'value', encode(h.value, 'base64'), 'partition', h."partition",
        'content_type', h.content_type, 'traceparent', h.traceparent, 'headers', h.headers)
FROM (
    SELECT c.xid, i.half_id, i.n::integer AS n
    FROM outbox.commit_log c CROSS JOIN LATERAL unnest(c.half_ids) WITH ORDINALITY AS i (half_id, n)
    WHERE c.shard = %(shard)s AND c.xid BETWEEN %(from_xid)s AND %(to_xid)s
        AND i.half_id = ANY (%(half_ids)s::int8[])
) l
CROSS JOIN LATERAL (
    SELECT half_id, nonce, producer_group_id, transaction_id, topic_id, key, value, "partition",
        content_type, traceparent, headers
    FROM outbox.half_message
    WHERE half_id = l.half_id AND half_id BETWEEN %(low)s AND %(high)s
    UNION
    SELECT half_id, nonce, producer_group_id, transaction_id, topic_id, key, value, "partition",
        content_type, traceparent, headers
    FROM outbox.parked_message WHERE half_id = l.half_id
) h
LEFT JOIN LATERAL (
    SELECT decided_by FROM outbox.op_message
    WHERE half_id = l.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
) o ON true
JOIN outbox.producer_group g ON g.id = h.producer_group_id
ON CONFLICT (half_id) DO NOTHING

-- name: any_held
-- Returns whether anything was ever held. Usually nothing was, and then a batch needs no further query.
SELECT EXISTS (SELECT FROM outbox.held_record)

-- name: read_holds
-- Reads in one row how held records affect a batch: which of its ids have a row that is not released, which a
-- released one, the open scopes (whole topics; topics and keys in parallel arrays), and whether a scope at or
-- below the position is due. A repair blocks no other record, nor does a record without a key.
WITH open AS MATERIALIZED (
    SELECT half_id, topic_id, key, xid, n, next_attempt_at, repair,
        bool_or(topic_wide) OVER (PARTITION BY topic_id, repair) AS wide
    FROM outbox.held_record
    WHERE shard = %(shard)s AND released_at IS NULL AND dropped_at IS NULL
), own AS MATERIALIZED (
    SELECT half_id, released_at IS NOT NULL AS released FROM outbox.held_record
    WHERE half_id = ANY (%(half_ids)s::int8[])
), keys AS MATERIALIZED (
    SELECT DISTINCT topic_id, key FROM open WHERE repair IS NULL AND NOT wide AND key IS NOT NULL
), firsts AS (
    SELECT DISTINCT ON (topic_id, repair, scope) next_attempt_at
    FROM (
        SELECT *, CASE WHEN wide THEN '' WHEN key IS NULL THEN half_id::text ELSE 'k' || encode(key, 'hex') END AS scope
        FROM open WHERE (xid, n) <= (%(xid)s::int8, %(n)s::int4)
    ) scoped
    ORDER BY topic_id, repair, scope, xid, n
)
SELECT (SELECT array_agg(half_id) FROM own WHERE NOT released),
    (SELECT array_agg(half_id) FROM own WHERE released),
    (SELECT array_agg(DISTINCT topic_id) FROM open WHERE wide AND repair IS NULL),
    (SELECT array_agg(topic_id ORDER BY topic_id, key) FROM keys),
    (SELECT array_agg(key ORDER BY topic_id, key) FROM keys),
    EXISTS (SELECT FROM firsts WHERE next_attempt_at <= clock_timestamp())

-- name: read_due
-- Reads the first rows of the scope that has been due for longest, in commit order, up to a sum of bytes and at
-- least one. A record that was itself refused is read alone; otherwise all rows up to the next such record. Of a
-- paced repair, all rows up to the first that is not due.
WITH open AS MATERIALIZED (
    SELECT half_id, topic_id, key, xid, n, next_attempt_at, attempts, repair,
        bool_or(topic_wide) OVER (PARTITION BY topic_id, repair) AS wide
    FROM outbox.held_record
    WHERE shard = %(shard)s AND released_at IS NULL AND dropped_at IS NULL
), scoped AS (
    SELECT *, CASE WHEN wide THEN '' WHEN key IS NULL THEN half_id::text ELSE 'k' || encode(key, 'hex') END AS scope
    FROM open WHERE (xid, n) <= (%(xid)s::int8, %(n)s::int4)
), placed AS MATERIALIZED (
    SELECT *, row_number() OVER in_order AS place, count(*) FILTER (WHERE attempts > 0) OVER in_order AS refused,
        count(*) FILTER (WHERE repair IS NOT NULL AND next_attempt_at > clock_timestamp()) OVER in_order AS early
    FROM scoped
    WINDOW in_order AS (PARTITION BY topic_id, repair, scope ORDER BY xid, n)
), due AS (
    SELECT topic_id, repair, scope FROM placed
    WHERE place = 1 AND next_attempt_at <= clock_timestamp()
    ORDER BY next_attempt_at LIMIT 1
), chosen AS (
    SELECT p.half_id, p.place,
        sum(coalesce(octet_length(r.payload ->> 'value'), 0)) OVER (ORDER BY p.place)
            - coalesce(octet_length(r.payload ->> 'value'), 0) AS bytes_before
    FROM placed p
    JOIN due d ON d.topic_id = p.topic_id AND d.repair IS NOT DISTINCT FROM p.repair AND d.scope = p.scope
    JOIN outbox.held_record r ON r.half_id = p.half_id
    WHERE p.place <= %(most)s AND (p.place = 1 OR p.refused = 0) AND p.early = 0
)
SELECT r.half_id, r.nonce, r.topic_id, r.key, r.payload, r.repair,
    EXISTS (SELECT FROM outbox.already_published a WHERE a.half_id = r.half_id AND a.nonce = r.nonce)
FROM chosen JOIN outbox.held_record r ON r.half_id = chosen.half_id
WHERE chosen.place = 1 OR chosen.bytes_before < %(bytes)s
ORDER BY chosen.place

-- name: postpone
-- Counts one more refusal of a held record; the time until the next attempt doubles up to a limit.
UPDATE outbox.held_record SET attempts = attempts + 1, publish_error = %(error)s,
    topic_wide = %(topic_wide)s,
    next_attempt_at = clock_timestamp()
        + make_interval(secs => least(%(last)s, %(first)s * 2.0 ^ least(attempts, 16)))
WHERE half_id = %(half_id)s AND released_at IS NULL AND dropped_at IS NULL

-- name: mark_released
-- Marks rows whose records Kafka has, in a manifest of the shard; a row that is already marked is unchanged.
UPDATE outbox.held_record r SET released_at = clock_timestamp(), release_batch_no = %(batch_no)s,
    released_partition = p."partition", released_offset = p."offset"
FROM unnest(%(half_ids)s::int8[], %(nonces)s::int8[], %(partitions)s::int4[], %(offsets)s::int8[])
    AS p (half_id, nonce, "partition", "offset")
WHERE r.half_id = p.half_id AND r.nonce = p.nonce AND r.released_at IS NULL
