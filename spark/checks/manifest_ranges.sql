-- The commits in the ranges of these batches, at the slots that their ranks give them.
SELECT
    batch.shard,
    commit.half_id,
    shiftleft(batch.batch_no, :index_bits) | (commit.rank - batch.from_rank - 1) AS slot
FROM {commits} AS commit
JOIN {batches} AS batch ON batch.shard = commit.shard
WHERE commit.rank > batch.from_rank AND commit.rank <= batch.to_rank
