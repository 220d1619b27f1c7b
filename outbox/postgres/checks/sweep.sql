-- name: position
-- Reads the cursor, the watermark (no half with a lower id can appear any more) and the database's time.
SELECT coalesce((SELECT position FROM outbox.progress WHERE name = 'sweep'), 0) AS position,
    outbox.watermark() << 15 AS bound, clock_timestamp() AS now

-- name: slice
-- Finds the end of a bounded slice of halves: before the first half that is too young to be swept.
WITH slice AS MATERIALIZED (
    SELECT half_id, prepared_at > %(young)s AS young
    FROM outbox.half_message
    WHERE half_id > %(position)s AND half_id < %(bound)s
    ORDER BY half_id
    LIMIT %(limit)s
)
SELECT count(*) AS looked, max(half_id) AS last
FROM slice
WHERE half_id < coalesce((SELECT min(half_id) FROM slice WHERE young), %(bound)s)

-- name: undecided
-- Range anti-join of halves and ops: reads the undecided halves of the slice that no other one is asked for, each with
-- the end of its present immunity.
-- The bounds on both sides prune leaves.
SELECT h.half_id, h.producer_group_id AS group_id, h.prepared_at,
    h.prepared_at + make_interval(secs => coalesce(h.check_immunity_seconds, g.transaction_timeout_seconds)) AS due_at,
    CASE WHEN h.check_immunity_seconds IS NULL THEN g.transaction_timeout_seconds END AS groups_immunity_seconds
FROM outbox.half_message h
JOIN outbox.producer_group g ON g.id = h.producer_group_id
WHERE h.half_id > %(position)s AND h.half_id <= %(last)s
    AND h.leader_id IS NULL AND NOT EXISTS (
        SELECT FROM outbox.op_message o
        WHERE o.half_id = h.half_id AND o.half_id > %(position)s AND o.half_id <= %(last)s)
ORDER BY h.half_id

-- name: move
-- Moves the cursor from where it was read; the first sweep of all creates it. No row means that another checker has
-- swept this slice.
INSERT INTO outbox.progress AS p (name, position, updated_at)
VALUES ('sweep', %(last)s, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET position = excluded.position, updated_at = excluded.updated_at
WHERE p.position = %(position)s

-- name: queue
-- Appends the first reference of halves that a sweep found undecided, due when their immunity ends.
INSERT INTO outbox.check_queue (producer_group_id, delay_seconds, id, half_id, age_from, due_at)
SELECT group_id, delay, (flush.xid << 15) + row_number() OVER (), half_id, prepared_at, due_at
FROM jsonb_to_recordset(%(queued)s) AS found (
    group_id int4, delay int4, half_id int8, prepared_at timestamptz, due_at timestamptz)
CROSS JOIN (SELECT outbox.current_xid() AS xid) flush
