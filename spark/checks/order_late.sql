-- The matches with a key that come after a later commit of their lane.
-- A lane is a topic, a partition and a shard: within it offsets rise with ranks, except for records
-- that were held. Rows are sorted by its hash, which is faster; order_details looks at the names of
-- a lane, so lanes with the same hash are no fault.
-- A lane can be as long as the log, so each task has a block of about a million offsets.
WITH keyed AS (
    SELECT
        topic, partition, shard, key_hash, offset, rank,
        xxhash64(topic, partition, shard) AS lane,
        offset >> 20 AS block
    FROM {matches}
    WHERE key_hash IS NOT NULL
),
blocks AS (
    SELECT
        lane, block,
        max(max(rank)) OVER (
            PARTITION BY lane
            ORDER BY block ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS earlier_blocks
    FROM keyed
    GROUP BY lane, block
),
ranked AS (
    SELECT /*+ BROADCAST(blocks) */
        *,
        max(rank) OVER (
            PARTITION BY lane, block
            ORDER BY offset ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS earlier_in_block
    FROM keyed
    JOIN blocks USING (lane, block)
)
SELECT topic, partition, shard, key_hash, offset, rank, true AS late
FROM ranked
WHERE greatest(earlier_blocks, earlier_in_block) > rank
