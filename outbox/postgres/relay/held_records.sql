-- name: owns
-- Returns whether a generation is the stored one, and locks the row so that it stays so until the transaction
-- ends.
SELECT true FROM outbox.progress WHERE name = %(name)s AND gen = %(gen)s AND halt_reason IS NULL FOR UPDATE

-- name: hold
-- Stores messages of a range of the commit log as held: their halves are kept longer than their leaves. A record that is
-- already held is unchanged.
INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, key, topic_wide, xid, n, publish_error,
    attempts, next_attempt_at)
SELECT h.half_id, h.nonce, %(shard)s, h.topic_id, h.key, %(topic_wide)s, l.xid, l.n, %(error)s,
    %(attempts)s, clock_timestamp() + make_interval(secs => %(wait)s)
FROM (
    SELECT c.xid, i.half_id, i.n::integer AS n
    FROM outbox.commit_log c CROSS JOIN LATERAL unnest(c.half_ids) WITH ORDINALITY AS i (half_id, n)
    WHERE c.shard = %(shard)s AND c.xid BETWEEN %(from_xid)s AND %(to_xid)s
        AND i.half_id = ANY (%(half_ids)s::int8[])
) l
CROSS JOIN LATERAL (
    SELECT half_id, nonce, topic_id, key FROM outbox.half_message
    WHERE half_id = l.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
) h
ON CONFLICT (half_id) DO NOTHING

-- name: read_holds
-- Reads by key how held records affect each message of a batch: whether it is held, because it has a row that is not
-- released, its topic is held as a whole, or an open record of its topic and key comes before it; and whether it has a
-- released row. A repair blocks no other record, nor does a record without a key.
SELECT half_id,
    released IS false OR (
        SELECT true FROM outbox.open_held h
        WHERE h.shard = %(shard)s AND h.redriven = '' AND h.topic_id = m.topic_id AND h.topic_wide LIMIT 1
    ) IS NOT NULL OR (
        SELECT (h.xid, h.n) < (m.xid, m.n) FROM outbox.open_held h
        WHERE h.shard = %(shard)s AND h.redriven = '' AND h.topic_id = m.topic_id AND h.scope = sha256(m.key)
        ORDER BY h.xid, h.n LIMIT 1
    ) IS true, released IS true
FROM (
    SELECT *, (SELECT released_at IS NOT NULL FROM outbox.held_record r WHERE r.half_id = b.half_id) AS released
    FROM unnest(%(half_ids)s::int8[], %(topics)s::int4[], %(keys)s::bytea[], %(xids)s::int8[], %(ns)s::int4[])
        AS b (half_id, topic_id, key, xid, n)
) m

-- name: due_head
-- Reads the first record of a scope that is due, at or below a position: a refused one or a repair that was due first,
-- or a waiting one whose predecessors are gone. The scopes are found one by one in their index, a topic that is held as
-- a whole at once. So the number of records that wait in a scope does not matter.
WITH RECURSIVE scopes AS (
    (
        SELECT h.topic_id, h.scope, (
            SELECT true FROM outbox.open_held w
            WHERE w.shard = h.shard AND w.redriven = '' AND w.topic_id = h.topic_id AND w.topic_wide LIMIT 1
        ) AS wide
        FROM outbox.open_held h WHERE h.shard = %(shard)s AND h.redriven = '' ORDER BY h.topic_id, h.scope LIMIT 1
    )
    UNION ALL
    SELECT next.topic_id, next.scope, next.wide
    FROM scopes s CROSS JOIN LATERAL (
        SELECT h.topic_id, h.scope, (
            SELECT true FROM outbox.open_held w
            WHERE w.shard = h.shard AND w.redriven = '' AND w.topic_id = h.topic_id AND w.topic_wide LIMIT 1
        ) AS wide
        FROM outbox.open_held h
        WHERE h.shard = %(shard)s AND h.redriven = ''
            AND (h.topic_id, h.scope) > (s.topic_id, CASE WHEN s.wide THEN decode(repeat('ff', 33), 'hex') ELSE s.scope END)
        ORDER BY h.topic_id, h.scope LIMIT 1
    ) next
), waiting AS (
    SELECT head.half_id, head.next_attempt_at
    FROM scopes s CROSS JOIN LATERAL (
        SELECT h.half_id, h.attempts, h.next_attempt_at, h.xid, h.n FROM outbox.open_held h
        WHERE h.half_id = CASE WHEN s.wide THEN (
            SELECT f.half_id FROM outbox.open_held f
            WHERE f.shard = %(shard)s AND f.redriven = '' AND f.topic_id = s.topic_id ORDER BY f.xid, f.n LIMIT 1
        ) ELSE (
            SELECT f.half_id FROM outbox.open_held f
            WHERE f.shard = %(shard)s AND f.redriven = '' AND f.topic_id = s.topic_id AND f.scope = s.scope
            ORDER BY f.xid, f.n LIMIT 1
        ) END
        OFFSET 0
    ) head
    WHERE head.attempts = 0 AND (head.xid, head.n) <= (%(xid)s::int8, %(n)s::int4)
    LIMIT 1
), refused AS (
    SELECT h.half_id, h.next_attempt_at FROM outbox.open_held h
    WHERE h.shard = %(shard)s AND (h.attempts > 0 OR h.repair IS NOT NULL)
        AND h.next_attempt_at <= statement_timestamp() AND (h.xid, h.n) <= (%(xid)s::int8, %(n)s::int4)
        AND h.half_id = CASE WHEN (
            SELECT true FROM outbox.open_held w
            WHERE w.shard = h.shard AND w.redriven = h.redriven AND w.topic_id = h.topic_id AND w.topic_wide LIMIT 1
        ) THEN (
            SELECT f.half_id FROM outbox.open_held f
            WHERE f.shard = h.shard AND f.redriven = h.redriven AND f.topic_id = h.topic_id ORDER BY f.xid, f.n LIMIT 1
        ) ELSE (
            SELECT f.half_id FROM outbox.open_held f
            WHERE f.shard = h.shard AND f.redriven = h.redriven AND f.topic_id = h.topic_id AND f.scope = h.scope
            ORDER BY f.xid, f.n LIMIT 1
        ) END
    ORDER BY h.next_attempt_at LIMIT 1
)
SELECT half_id FROM (SELECT * FROM refused UNION ALL SELECT * FROM waiting) due ORDER BY next_attempt_at LIMIT 1

-- name: read_scope
-- Reads the first messages of the scope of a record, in commit order. A record that was itself refused is read alone;
-- otherwise all up to the next such record. Of a repair, all up to the first that is not due.
WITH head AS MATERIALIZED (
    SELECT h.shard, h.redriven, h.topic_id, h.scope, (
        SELECT true FROM outbox.open_held w
        WHERE w.shard = h.shard AND w.redriven = h.redriven AND w.topic_id = h.topic_id AND w.topic_wide LIMIT 1
    ) AS wide
    FROM outbox.open_held h WHERE h.half_id = %(head)s
), scoped AS (
    SELECT r.* FROM head CROSS JOIN LATERAL (
        SELECT f.* FROM outbox.open_held f
        WHERE f.shard = head.shard AND f.redriven = head.redriven AND f.topic_id = head.topic_id
            AND (f.xid, f.n) <= (%(xid)s::int8, %(n)s::int4)
        ORDER BY f.xid, f.n LIMIT %(most)s
    ) r WHERE head.wide
    UNION ALL
    SELECT r.* FROM head CROSS JOIN LATERAL (
        SELECT f.* FROM outbox.open_held f
        WHERE f.shard = head.shard AND f.redriven = head.redriven AND f.topic_id = head.topic_id AND f.scope = head.scope
            AND (f.xid, f.n) <= (%(xid)s::int8, %(n)s::int4)
        ORDER BY f.xid, f.n LIMIT %(most)s
    ) r WHERE head.wide IS NULL
), placed AS (
    SELECT *, row_number() OVER in_order AS place, count(*) FILTER (WHERE attempts > 0) OVER in_order AS refused,
        count(*) FILTER (WHERE repair IS NOT NULL AND next_attempt_at > statement_timestamp()) OVER in_order AS early
    FROM scoped WINDOW in_order AS (ORDER BY xid, n)
)
SELECT half_id, repair, (extract(epoch FROM clock_timestamp()) * 1000)::int8
FROM placed WHERE (place = 1 OR refused = 0) AND early = 0 ORDER BY place

-- name: postpone
-- Counts one more refusal of a held record; the time until the next attempt doubles up to a limit. If it is refused for
-- itself, its topic is not held as a whole any more: it is the first of the topic, and what was refused with all of the
-- topic would wait behind it for ever.
WITH refused AS (
    UPDATE outbox.held_record SET attempts = attempts + 1, publish_error = %(error)s,
        topic_wide = %(topic_wide)s,
        next_attempt_at = clock_timestamp()
            + make_interval(secs => least(%(last)s, %(first)s * 2.0 ^ least(attempts, 16)))
    WHERE half_id = %(half_id)s AND released_at IS NULL AND dropped_at IS NULL
    RETURNING half_id, shard, coalesce(repair, '') AS redriven, topic_id
)
UPDATE outbox.held_record w SET topic_wide = false
FROM refused r
WHERE NOT %(topic_wide)s AND w.shard = r.shard AND coalesce(w.repair, '') = r.redriven AND w.topic_id = r.topic_id
    AND w.topic_wide AND w.half_id <> r.half_id AND w.released_at IS NULL AND w.dropped_at IS NULL

-- name: mark_released
-- Marks rows whose records Kafka has, in a manifest of the shard; a row that is already marked is unchanged.
UPDATE outbox.held_record r SET released_at = clock_timestamp(), release_batch_no = %(batch_no)s,
    released_partition = p."partition", released_offset = p."offset"
FROM unnest(%(half_ids)s::int8[], %(nonces)s::int8[], %(partitions)s::int4[], %(offsets)s::int8[])
    AS p (half_id, nonce, "partition", "offset")
WHERE r.half_id = p.half_id AND r.nonce = p.nonce AND r.released_at IS NULL
