-- The first records of a sample of the messages, another one each turn, with their commits.
-- Those that an earlier run reported are looked at again, whatever the digest; without any, no half
-- id is parsed to choose.
WITH chosen AS (
    SELECT *
    FROM {matches}
    WHERE NOT redriven
        AND (
            pmod(digest, :one_of) = :turn
            OR :again AND half_id IN (SELECT half_id FROM {reported})
        )
    ORDER BY half_id, topic, partition, offset
    LIMIT :most
)
SELECT /*+ BROADCAST(chosen) */
    half_id,
    topic, partition, offset, key_hash, chosen.shard, batch_no,
    struct(xid, n) AS position,
    committed_at AS decided_at,
    published_at AS record_time
FROM chosen
JOIN (SELECT half_id, xid, n, committed_at FROM {commits}) USING (half_id)
ORDER BY half_id, topic, partition, offset
