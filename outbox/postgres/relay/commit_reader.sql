-- name: read_commits
-- Reads the shard's rows from a position on that are below the watermark, by key, in commit order. The watermark
-- is from the same snapshot: otherwise a lower xid could still commit and be passed. Ages (s) compare two times of
-- the same clock, whose time (ms) is that of the records. Each row says too whether anything was ever held, and whether anything of the shard is: usually
-- nothing was, and a question of its own would be a third of what a small batch asks.
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

-- name: topic_names
-- Reads interned topic names by key.
SELECT id, name FROM outbox.topic WHERE id = ANY (%(ids)s)

-- name: group_names
-- Reads interned group names by key.
SELECT id, name FROM outbox.producer_group WHERE id = ANY (%(ids)s)
