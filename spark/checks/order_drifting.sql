-- The matches whose batch header does not name the place of their commit.
-- Excused are records of releases, of repairs and of batches older than the kept manifests.
WITH kept AS (
    SELECT shard, min(batch_no) AS first_batch
    FROM {manifests}
    WHERE intact
    GROUP BY shard
)
SELECT /*+ BROADCAST(kept) */ matches.*
FROM {matches} AS matches
LEFT JOIN kept ON kept.shard = matches.shard
WHERE NOT proven
    AND NOT coalesce(
        named_shard % :shards = matches.shard
        AND (
            NOT in_turn
            OR (rank > from_rank AND rank <= to_rank AND index = rank - from_rank - 1)
            OR coalesce(batch_no < first_batch, batch_no IS NOT NULL)
        ),
        false
    )
