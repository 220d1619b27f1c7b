-- name: look
-- Reads whether any role may publish in its own transaction, and whether a published message waits that the given older
-- snapshot did not see, and returns the present snapshot. Reads by key: ids from the snapshot's end on, and ids of the few transactions that were open in it. So
-- deleted rows with lower ids are never read, however long another transaction keeps vacuum from removing them. The
-- snapshot before every transaction (1:1:) has seen nothing, whatever base was added to the ids meanwhile.
SELECT plain_outbox, pg_current_snapshot()::text, EXISTS (
        SELECT FROM outbox.plain_message
        WHERE half_id >= CASE pg_snapshot_xmax(seen)::text WHEN '1' THEN 0 ELSE (pg_snapshot_xmax(seen)::text::bigint + base) << 15 END
    ) OR EXISTS (
        SELECT FROM pg_snapshot_xip(seen) AS open (xid)
        CROSS JOIN LATERAL (
            SELECT FROM outbox.plain_message
            WHERE half_id BETWEEN (open.xid::text::bigint + base) << 15 AND ((open.xid::text::bigint + base + 1) << 15) - 1
        ) AS waiting)
FROM outbox.installation, CAST(%(seen)s AS pg_snapshot) AS seen

-- name: lock
-- Waits for its turn to admit, before this transaction takes its xid. So admissions have one order. Locks one table
-- against other admissions. What is taken is read by index: a plan that sorts what waits would read all of it for each batch.
SELECT outbox.begin_admission(), set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)

-- name: take
-- Deletes and returns the first messages in the order of their calls that had committed in the given newer snapshot, up
-- to a sum of bytes and at least one; and whether more messages wait than these bytes allow. Reads by the number of the
-- call, after the last one of the batch before. A transaction that had no id yet in the older snapshot has a later number
-- than each message that this snapshot has seen: not before "floor" are the numbers of all others. Only those of the few
-- transactions that were open in it may be lower: these are read by their ids, as by "look". So neither what waits behind
-- a batch nor a deleted row is read. What was committed later waits: else a producer without a pause would keep an
-- admission, and the ends behind it, busy for ever. Writes one transaction_key row for each new transaction id, and waits
-- for a concurrent transaction that writes the same id. The ids are sorted, so that two flushes cannot deadlock.
WITH waiting AS (
    (
        SELECT half_id, place, coalesce(octet_length(value), 0) AS bytes FROM outbox.plain_message
        WHERE pg_visible_in_snapshot(greatest((half_id >> 15) - (SELECT base FROM outbox.installation), 0)::text::xid8,
                CAST(%(upto)s AS pg_snapshot))
            AND place > greatest(%(after)s::int8, %(floor)s::int8)
        ORDER BY place LIMIT %(most)s
    )
    UNION ALL
    (
        SELECT late.half_id, late.place, late.bytes
        FROM outbox.installation
        CROSS JOIN pg_snapshot_xip(CAST(%(seen)s AS pg_snapshot)) AS open (xid)
        CROSS JOIN LATERAL (
            SELECT half_id, place, coalesce(octet_length(value), 0) AS bytes FROM outbox.plain_message
            WHERE half_id BETWEEN (open.xid::text::bigint + base) << 15 AND ((open.xid::text::bigint + base + 1) << 15) - 1
        ) AS late
        WHERE %(after)s::int8 < %(floor)s::int8 AND late.place > %(after)s::int8 AND late.place <= %(floor)s::int8
            AND pg_visible_in_snapshot(greatest((late.half_id >> 15) - base, 0)::text::xid8, CAST(%(upto)s AS pg_snapshot))
        ORDER BY late.place LIMIT %(most)s
    )
), first AS MATERIALIZED (
    SELECT half_id, place, bytes FROM waiting ORDER BY place LIMIT %(most)s
), chosen AS MATERIALIZED (
    SELECT half_id FROM (SELECT half_id, sum(bytes) OVER (ORDER BY place) - bytes AS bytes_before FROM first) summed
    WHERE bytes_before < %(bytes)s
), taken AS (
    DELETE FROM outbox.plain_message m USING chosen WHERE m.half_id = chosen.half_id RETURNING m.*
), claimed AS (
    INSERT INTO outbox.transaction_key (producer_group_id, transaction_id, half_id)
    SELECT producer_group_id, transaction_id, half_id FROM taken WHERE transaction_id IS NOT NULL
    ORDER BY producer_group_id, transaction_id, half_id
    ON CONFLICT DO NOTHING
)
SELECT taken.*, g.name AS producer_group, t.name AS topic,
    (SELECT count(*) FROM first) > (SELECT count(*) FROM chosen) AS cut_off
FROM taken
JOIN outbox.producer_group g ON g.id = taken.producer_group_id
JOIN outbox.topic t ON t.id = taken.topic_id
ORDER BY taken.place
