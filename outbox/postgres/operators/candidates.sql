-- name: all
-- Every half message.
SELECT half_id FROM outbox.half_message

-- name: undecided
-- Halves after the sweep's cursor, and those that wait for a check.
SELECT half_id FROM outbox.half_message
WHERE half_id > coalesce((SELECT position FROM outbox.progress WHERE name = 'sweep'), 0)
UNION ALL
SELECT half_id FROM outbox.check_queue

-- name: parked
-- Messages that were parked, resumed and decided ones too.
SELECT half_id FROM outbox.parked_message

-- name: unpublished
-- Committed halves that the relay of their shard has not passed yet, and held records that are not published, dropped
-- ones too. Each shard's position bounds its range of the commit log's key; no older row is read.
SELECT ids.half_id
FROM generate_series(0, 15) AS s (shard)
LEFT JOIN outbox.progress p ON p.name = 'relay:' || s.shard
CROSS JOIN LATERAL (
    SELECT xid, half_ids FROM outbox.commit_log
    WHERE shard = s.shard AND xid >= coalesce(p.position, 0) OFFSET 0
) flush
CROSS JOIN LATERAL unnest(flush.half_ids) WITH ORDINALITY AS ids (half_id, n)
WHERE (flush.xid, ids.n) > (coalesce(p.position, 0), coalesce(p.position_n, 0))
UNION ALL
SELECT half_id FROM outbox.held_record WHERE released_at IS NULL

-- name: unsettled
-- Held records that an operator may still release or drop.
SELECT half_id FROM outbox.held_record WHERE released_at IS NULL AND dropped_at IS NULL
