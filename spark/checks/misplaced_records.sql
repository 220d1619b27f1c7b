-- The matches whose key belongs to another partition of their topic.
-- Growth must not be taken for a fault, so only those are judged that were published when the relay
-- knew all partitions. Two things show that: the first record of a shard's batches in the last
-- partition, and a place at which an earlier run knew it. What names no batch is not judged.
-- A held message and a repair are published long after their commit, so positions do not show it.
WITH reached AS (
    SELECT topic, named_shard, struct(batch_no, index) AS at
    FROM {matches}
    JOIN {last_partitions} USING (topic)
    WHERE partition = last AND batch_no IS NOT NULL
    UNION ALL
    SELECT topic, named_shard, struct(batch, index)
    FROM {known_places}
),
since AS (
    SELECT topic, named_shard, min(at) AS all_known_at
    FROM reached
    GROUP BY topic, named_shard
)
SELECT /*+ BROADCAST(since) */
    topic, partition, offset, half_id, key_hash,
    home % (last + 1) AS expected
FROM {matches}
JOIN {last_partitions} USING (topic)
JOIN since USING (topic, named_shard)
WHERE struct(batch_no, index) >= all_known_at AND home % (last + 1) <> partition
