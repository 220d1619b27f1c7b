-- name: limit_session
-- Sets the planner and the longest silence of a relay's session. It holds the shard's lock, and a relay that is frozen
-- must not keep it. A relay that works uses its session at least every 20 seconds.
SELECT set_config('enable_nestloop', 'off', false), set_config('idle_session_timeout', '30s', false),
    set_config('idle_in_transaction_session_timeout', '30s', false)

-- name: read_commits
-- Reads the shard's rows from a position on that are below the watermark, by key, in commit order. The watermark
-- is from the same snapshot: otherwise a lower xid could still commit and be passed. Ages (s) compare two times of
-- the same clock, whose time (ms) is that of the records. Each row says too whether anything was ever held, and whether
-- anything of the shard is: usually nothing was, and a question of its own would be a third of what a small batch asks.
SELECT xid, half_ids, extract(epoch FROM clock_timestamp() - committed_at)::float8, awaited,
    (extract(epoch FROM clock_timestamp()) * 1000)::int8, EXISTS (SELECT FROM outbox.held_record),
    EXISTS (SELECT FROM outbox.open_held WHERE shard = %(shard)s)
FROM outbox.commit_log
WHERE shard = %(shard)s AND xid >= %(xid)s AND xid < outbox.watermark()
ORDER BY xid
LIMIT %(rows)s

-- name: read_contents
-- Reads halves and who decided them, by key and in key order, up to a sum of bytes and at least one. Missing
-- ones are not returned. The sub-select keeps 2 000 ids out of the planner's estimates.
SELECT half_id, nonce, decided_by, producer_group_id, transaction_id, topic_id, key, value, "partition",
    content_type, traceparent, headers, known, content_digest
FROM (
    SELECT h.*, o.decided_by,
        (h.half_id, h.nonce) IN (
            SELECT half_id, nonce FROM outbox.already_published
            WHERE half_id BETWEEN %(low)s AND %(high)s) AS known,
        sum(coalesce(octet_length(h.value), 0)) OVER (ORDER BY h.half_id)
            - coalesce(octet_length(h.value), 0) AS bytes_before
    FROM (
        SELECT half_id, nonce, producer_group_id, transaction_id, topic_id, key, value, "partition",
            content_type, traceparent, headers, content_digest
        FROM outbox.half_message
        WHERE half_id = ANY ((SELECT %(half_ids)b::int8[])::int8[]) AND half_id BETWEEN %(low)s AND %(high)s
    ) h
    JOIN (
        SELECT half_id, decided_by FROM outbox.op_message
        WHERE half_id = ANY ((SELECT %(half_ids)b::int8[])::int8[]) AND half_id BETWEEN %(low)s AND %(high)s
    ) o ON o.half_id = h.half_id
) AS contents
WHERE bytes_before < %(bytes)s

-- name: topic_names
-- Reads interned topic names by key.
SELECT id, name FROM outbox.topic WHERE id = ANY (%(ids)s)

-- name: group_names
-- Reads interned group names by key.
SELECT id, name FROM outbox.producer_group WHERE id = ANY (%(ids)s)

-- name: compare
-- Reads in one snapshot: whether a manifest's end is below the watermark, the ids of its range in the commit log
-- as message ids, NULL where the half is gone (by key; bounds prune leaves), and which of its ids are held.
WITH ids AS MATERIALIZED (
    SELECT l.xid, i.half_id, i.n
    FROM outbox.commit_log l CROSS JOIN LATERAL unnest(l.half_ids) WITH ORDINALITY AS i (half_id, n)
    WHERE l.shard = %(shard)s AND l.xid BETWEEN %(from_xid)s AND %(to_xid)s
        AND (l.xid, i.n) > (%(from_xid)s::int8, %(from_n)s::int8)
        AND (l.xid, i.n) <= (%(to_xid)s::int8, %(to_n)s::int8)
), identified AS MATERIALIZED (
    SELECT ids.*, outbox.message_id(ids.half_id, h.nonce) AS message_id
    FROM ids
    LEFT JOIN LATERAL (
        SELECT nonce FROM outbox.half_message
        WHERE half_id = ids.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
    ) h ON true
)
SELECT %(to_xid)s < outbox.watermark(),
    (SELECT array_agg(message_id ORDER BY xid, n) FROM identified),
    (SELECT array_agg(outbox.message_id(half_id, nonce)) FROM outbox.held_record WHERE half_id = ANY (%(held)s::int8[]))

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
    SELECT -1 AS topic_id, ''::bytea AS scope, false AS wide
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
-- otherwise all up to the next such record. Where the topic has none such any more, its scopes are read together. Of a
-- repair, all up to the first that is not due.
WITH head AS MATERIALIZED (
    SELECT h.shard, h.redriven, h.topic_id, h.scope, EXISTS (
        SELECT FROM outbox.open_held w
        WHERE w.shard = h.shard AND w.redriven = h.redriven AND w.topic_id = h.topic_id AND w.topic_wide
    ) OR (h.redriven = '' AND NOT EXISTS (
        SELECT FROM outbox.open_held w
        WHERE w.shard = h.shard AND w.redriven = '' AND w.topic_id = h.topic_id AND w.attempts > 0
    )) AS wide
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
    ) r WHERE NOT head.wide
), placed AS (
    SELECT *, row_number() OVER in_order AS place, count(*) FILTER (WHERE attempts > 0) OVER in_order AS refused,
        count(*) FILTER (WHERE repair IS NOT NULL AND next_attempt_at > statement_timestamp()) OVER in_order AS early
    FROM scoped WINDOW in_order AS (ORDER BY xid, n)
)
SELECT half_id, nonce, repair, (extract(epoch FROM clock_timestamp()) * 1000)::int8
FROM placed WHERE (place = 1 OR refused = 0) AND early = 0 ORDER BY place
