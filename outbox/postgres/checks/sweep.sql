-- name: start
-- Creates the sweep's cursor, once.
INSERT INTO outbox.progress (name) VALUES ('sweep') ON CONFLICT DO NOTHING

-- name: position
-- Reads the cursor, the watermark (a half of a lower id can no longer appear) and the database's time.
SELECT position, outbox.watermark() << 15 AS bound, clock_timestamp() AS now
FROM outbox.progress
WHERE name = 'sweep'

-- name: slice
-- Finds how far a bounded slice of halves reaches: up to the first that is too young to be looked at.
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
-- Range anti-join of halves and ops: the halves of the slice that nobody has decided, with the immunity
-- that each has now. The bounds on both sides prune leaves.
SELECT h.half_id, h.producer_group_id, h.prepared_at,
    coalesce(h.check_immunity_seconds, g.transaction_timeout_seconds) AS immunity_seconds
FROM outbox.half_message h
JOIN outbox.producer_group g ON g.id = h.producer_group_id
WHERE h.half_id > %(position)s AND h.half_id <= %(last)s
    AND NOT EXISTS (
        SELECT FROM outbox.op_message o
        WHERE o.half_id = h.half_id AND o.half_id > %(position)s AND o.half_id <= %(last)s)
ORDER BY h.half_id

-- name: move
-- Moves the cursor from where it was read; no row means that another checker has swept this slice.
UPDATE outbox.progress
SET position = %(last)s, updated_at = clock_timestamp()
WHERE name = 'sweep' AND position = %(position)s
