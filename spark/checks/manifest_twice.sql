-- The odd batches that publish a message for the second time; a repair may do so.
WITH asked AS (
    SELECT message_id, shard, batch_no
    FROM {entries}
    LEFT SEMI JOIN {odd} USING (shard, batch_no)
    WHERE status = 'P'
),
published AS (
    SELECT DISTINCT message_id, shard, batch_no
    FROM {listings}
    LEFT SEMI JOIN asked USING (message_id)
    WHERE status = 'P' AND coalesce(kind <> :repair, true)
),
twice AS (
    SELECT message_id
    FROM published
    GROUP BY message_id
    HAVING count(*) > 1
)
SELECT shard, batch_no
FROM asked
LEFT SEMI JOIN twice USING (message_id)
