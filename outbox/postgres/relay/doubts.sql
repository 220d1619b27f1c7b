-- name: next_ids
-- Reads the ids of the next commits after a position, at most a batch of them, by key and in commit order.
SELECT i.half_id
FROM (
    SELECT xid, half_ids FROM outbox.commit_log
    WHERE shard = %(shard)s AND xid >= %(xid)s
    ORDER BY xid LIMIT %(most)s::int8 + 1
) l CROSS JOIN LATERAL unnest(l.half_ids) WITH ORDINALITY AS i (half_id, n)
WHERE (l.xid, i.n) > (%(xid)s::int8, %(n)s::int8)
ORDER BY l.xid, i.n LIMIT %(most)s

-- name: destinations
-- Reads the random bits, the topic, the key and the requested partition of messages by key; bounds prune leaves.
SELECT h.half_id, h.nonce, t.name, h.key, h."partition"
FROM (
    SELECT half_id, nonce, topic_id, key, "partition" FROM outbox.half_message
    WHERE half_id = ANY ((SELECT %(half_ids)b::int8[])::int8[]) AND half_id BETWEEN %(low)s AND %(high)s
    UNION
    SELECT half_id, nonce, topic_id, key, "partition" FROM outbox.parked_message
    WHERE half_id = ANY ((SELECT %(half_ids)b::int8[])::int8[])
) h JOIN outbox.topic t ON t.id = h.topic_id

-- name: next_held
-- Reads the held records of the shard that may be published next, at most a batch of them, by the shard's index.
SELECT h.half_id, h.nonce, t.name
FROM (
    SELECT half_id, nonce, topic_id FROM outbox.open_held
    WHERE shard = %(shard)s AND lane IS NOT NULL ORDER BY shard, lane, topic_id, scope, xid, n LIMIT %(most)s
) h JOIN outbox.topic t ON t.id = h.topic_id

-- name: order_repairs
-- Stores messages of the shard as held and as a repair, with all that their records need, and an audit row for each.
-- A message that waits already, that an operator has given up or that a batch after the last known one has released is
-- unchanged. Locks no row that another relay uses.
WITH absent AS MATERIALIZED (
    SELECT half_id, nonce FROM unnest(%(half_ids)s::int8[], %(nonces)s::int8[]) AS a (half_id, nonce)
), entered AS (
    INSERT INTO outbox.held_record AS known (half_id, nonce, shard, topic_id, key, xid, n, publish_error, repair,
        attempts, topic_wide, next_attempt_at, payload)
    SELECT h.half_id, h.nonce, %(shard)s, h.topic_id, h.key, o.xid,
        coalesce(array_position(c.half_ids, h.half_id), 1), 'Kafka left its transaction open', %(repair)s,
        0, false, clock_timestamp(),
        jsonb_build_object('producer_group', g.name, 'transaction_id', h.transaction_id, 'decided_by', o.decided_by,
            'value', encode(h.value, 'base64'), 'partition', h."partition", 'content_type', h.content_type,
            'traceparent', h.traceparent, 'headers', h.headers)
    FROM absent a
    CROSS JOIN LATERAL (
        SELECT half_id, nonce, producer_group_id, transaction_id, topic_id, key, value, "partition", content_type,
            traceparent, headers
        FROM outbox.half_message WHERE half_id = a.half_id AND half_id BETWEEN %(low)s AND %(high)s
        UNION
        SELECT half_id, nonce, producer_group_id, transaction_id, topic_id, key, value, "partition", content_type,
            traceparent, headers
        FROM outbox.parked_message WHERE half_id = a.half_id
    ) h
    CROSS JOIN LATERAL (
        SELECT xid, decided_by FROM outbox.op_message
        WHERE half_id = a.half_id AND half_id BETWEEN %(low)s AND %(high)s AND decision = 1 OFFSET 0
    ) o
    JOIN outbox.producer_group g ON g.id = h.producer_group_id
    LEFT JOIN outbox.commit_log c ON c.shard = %(shard)s AND c.xid = o.xid
    WHERE h.nonce = a.nonce
    ON CONFLICT (half_id) DO UPDATE SET (held_at, publish_error, attempts, next_attempt_at, repair, payload,
            topic_wide, released_at, release_batch_no, released_partition, released_offset)
        = (clock_timestamp(), excluded.publish_error, 0, excluded.next_attempt_at, excluded.repair, excluded.payload,
            false, NULL, NULL, NULL, NULL)
    WHERE known.released_at IS NOT NULL AND coalesce(known.release_batch_no, 0) <= %(batch_no)s
    RETURNING half_id
)
INSERT INTO outbox.audit_log (action, target, half_id, reason)
SELECT 'published_again', 'message', half_id, 'Kafka left its transaction open, and no consumer saw its record'
FROM entered
RETURNING half_id
