-- What is doubtful about each manifest with entries: a row per batch.
--   odd         it may list messages of other manifests: it overlaps one, or publishes out of turn
--   differs     its entries are not the commits of its range
--   repeats     the same, but an earlier batch claims some of its range
--   miscounted  it does not publish as many entries as it says
--   partly      it lists messages that it does not publish
WITH ranges AS (
    SELECT
        *,
        kind = :batch AS in_turn,
        struct(from_xid AS xid, from_n AS n) AS first,
        struct(to_xid AS xid, to_n AS n) AS last
    FROM {listed}
),
overlapping AS (  -- superseded: PostgreSQL had lost its end, and a later batch begins inside it
    SELECT
        *,
        in_turn
            AND coalesce(min(CASE WHEN in_turn THEN first END) OVER later < last, false)
            AS superseded,
        in_turn
            AND coalesce(max(CASE WHEN in_turn THEN last END) OVER earlier > first, false)
            AS overlaps
    FROM ranges
    WINDOW
        earlier AS (
            PARTITION BY shard ORDER BY offset ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
        later AS (
            PARTITION BY shard ORDER BY offset ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        )
),
compared AS (
    SELECT
        *,
        in_turn
            AND NOT superseded
            AND from_xid >= :kept_from
            AND NOT exists(
                :retired_leaves,
                leaf -> leaf BETWEEN
                    shiftright(from_xid, :leaf_bits) AND shiftright(to_xid, :leaf_bits)
            )
            AND (surplus <> 0 OR mixed <> 0 OR summed <> 0) AS is_other
    FROM overlapping
    LEFT JOIN {checksums} USING (shard, batch_no)
    WHERE entries > 0
)
SELECT
    shard,
    batch_no,
    superseded OR overlaps OR kind = :release OR is_other AS odd,
    is_other AND NOT overlaps AS differs,
    is_other AND overlaps AS repeats,
    published_here <> published AS miscounted,
    published < entries AS partly
FROM compared
