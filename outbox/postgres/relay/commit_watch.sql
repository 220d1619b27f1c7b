-- name: watermark
-- Reads only the watermark: while it is unchanged, no commit has become final.
SELECT outbox.watermark()

-- name: fresh_shards
-- Reads which shards have commits between two watermarks: one index probe per shard and leaf.
SELECT DISTINCT shard FROM outbox.commit_log
WHERE shard = ANY ('{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}'::int2[]) AND xid >= %(low)s AND xid < %(high)s
