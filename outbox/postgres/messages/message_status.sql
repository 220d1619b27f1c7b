-- name: statuses
-- Reads, by key, the status of messages: the half, its leader, the parking of both, the op, the relay's position of the shard,
-- and any held record. The bounds prune leaves; LATERAL … OFFSET 0 keeps every look-up by key.
SELECT h.half_id, h.nonce, h.producer_group_id, h.transaction_id, h.leader_id,
    CASE WHEN h.leader_id IS NOT NULL THEN (
        SELECT nonce FROM outbox.half_message WHERE half_id = h.leader_id AND half_id BETWEEN %(low)s AND %(high)s
    ) END AS leader_nonce,
    o.decision, o.decided_by, o.decided_at, o.reason, o.xid,
    parked.half_id IS NOT NULL AND parked.resumed_at IS NULL AS parked,
    coalesce(o.xid < p.position OR (o.xid = p.position AND p.position_n > 0 AND (
        SELECT array_position(c.half_ids, h.half_id) FROM outbox.commit_log c
        WHERE c.shard = (h.half_id & 15)::int2 AND c.xid = o.xid) <= p.position_n), false)
        OR held.released_at IS NOT NULL AS published,
    held.half_id IS NOT NULL AND held.released_at IS NULL AS held,
    held.publish_error
FROM outbox.half_message h
LEFT JOIN LATERAL (
    SELECT decision, decided_by, decided_at, reason, xid FROM outbox.op_message
    WHERE half_id = h.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
) o ON true
LEFT JOIN outbox.parked_message parked ON parked.half_id = coalesce(h.leader_id, h.half_id)
LEFT JOIN outbox.held_record held ON held.half_id = h.half_id
LEFT JOIN outbox.progress p ON p.name = 'relay:' || (h.half_id & 15)
WHERE h.half_id = ANY (%(half_ids)s::int8[]) AND h.half_id BETWEEN %(low)s AND %(high)s

-- name: publications
-- Reads, by key, the topic, partition and offset of committed messages: from the first batch of the shard that
-- ends after the message's place in commit_log. The relay writes these rows at most one second late. A record that
-- was held has its offset in its own row.
SELECT asked.half_id, t.name AS topic, batch.partitions[batch.at] AS "partition", batch.offsets[batch.at] AS "offset",
    batch.published_at
FROM unnest(%(half_ids)s::int8[], %(xids)s::int8[]) AS asked (half_id, xid)
CROSS JOIN LATERAL (
    SELECT topic_id FROM outbox.half_message
    WHERE half_id = asked.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
) h
JOIN outbox.topic t ON t.id = h.topic_id
CROSS JOIN LATERAL (
    SELECT l.partitions, l.offsets, l.published_at, array_position(l.half_ids, asked.half_id) AS at
    FROM outbox.publication_log l
    WHERE l.shard = (asked.half_id & 15)::int2 AND (l.to_xid, l.to_n) >= (asked.xid, 1)
    ORDER BY l.to_xid, l.to_n, l.batch_no
    LIMIT 16
) batch
WHERE batch.at IS NOT NULL
UNION ALL
SELECT r.half_id, t.name, r.released_partition, r.released_offset, r.released_at
FROM outbox.held_record r JOIN outbox.topic t ON t.id = r.topic_id
WHERE r.half_id = ANY (%(half_ids)s::int8[]) AND r.released_offset IS NOT NULL

-- name: orphans
-- Reads, by key, messages that only Kafka has, and finds their group by the name in their record: the group's own
-- row may have been lost with the message.
SELECT a.half_id, a.nonce, g.id AS producer_group_id, a.transaction_id, a.found_at
FROM unnest(%(half_ids)s::int8[], %(nonces)s::int8[]) AS asked (half_id, nonce)
JOIN outbox.already_published a ON a.half_id = asked.half_id AND a.nonce = asked.nonce
JOIN outbox.producer_group g ON g.name = a.producer_group
