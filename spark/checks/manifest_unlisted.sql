-- The batches with a record at the place of an entry that was not published there: it was held, or
-- published before. Where a record is missing instead, the message is LOST.
SELECT shard, batch_no
FROM {entries}
LEFT SEMI JOIN (SELECT * FROM {records} WHERE NOT ahead) USING (shard, batch_no, index, half_id)
WHERE status IN ('K', 'S')
