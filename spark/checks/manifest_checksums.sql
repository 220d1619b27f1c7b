-- By batch how its entries differ from the commits at its slots: three zeros where they are equal.
SELECT
    shard,
    batch_no,
    sum(side) AS surplus,
    bit_xor(hash) AS mixed,
    sum(side * (shiftright(hash, 32))) AS summed,
    count_if(status = 'P') AS published_here
FROM (
    SELECT
        shard,
        batch_no,
        1 AS side,
        xxhash64(half_id, shiftleft(batch_no, :index_bits) | index) AS hash,
        status
    FROM {entries}
    UNION ALL
    SELECT shard, shiftright(slot, :index_bits), -1, xxhash64(half_id, slot), NULL
    FROM {commits}
)
GROUP BY shard, batch_no
