-- By topic the number of misplaced records and of their keys, and the first records.
-- A record for which the producer requested a partition is not judged here.
SELECT
    topic,
    count(*) AS records,
    count(DISTINCT key_hash) AS keys,
    slice(
        sort_array(collect_list(struct(partition, offset, half_id, expected))), 1, :shown
    ) AS first
FROM {misplaced}
LEFT SEMI JOIN {unrequested} USING (half_id)
GROUP BY topic
ORDER BY topic
