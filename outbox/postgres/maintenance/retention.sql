-- name: leaves
-- Reads the numbers of the attached leaves from the catalogue, oldest first.
SELECT substring(c.relname FROM '\d+$')::int8
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'outbox.half_message'::regclass AND c.relname ~ '^half_message_\d+$'
ORDER BY 1

-- name: blocked_by
-- Returns why a leaf must stay, by conditions that are cheap to read: a transaction that may still write to it, a
-- recent message, a message that the sweep has not passed or that a delay class has still to read, a held message.
-- NULL: none of these. Locks nothing.
SELECT CASE
    WHEN outbox.watermark() < %(to_xid)s THEN 'in use'
    WHEN (SELECT prepared_at FROM outbox.half_message WHERE half_id >= %(low)s AND half_id < %(high)s
          ORDER BY half_id DESC LIMIT 1) > clock_timestamp() - make_interval(secs => %(retention)s) THEN 'young'
    WHEN EXISTS (
        SELECT FROM outbox.half_message WHERE half_id >= %(low)s AND half_id < %(high)s
            AND half_id > coalesce((SELECT position FROM outbox.progress WHERE name = 'sweep'), 0)) THEN 'sweep'
    WHEN EXISTS (
        SELECT FROM outbox.check_queue q
        LEFT JOIN outbox.check_class c USING (producer_group_id, delay_seconds)
        WHERE q.half_id >= %(low)s AND q.half_id < %(high)s AND q.id > coalesce(c.position, 0)) THEN 'check'
    WHEN EXISTS (
        SELECT FROM outbox.held_record
        WHERE (half_id >= %(low)s AND half_id < %(high)s OR xid >= %(from_xid)s AND xid < %(to_xid)s)
            AND released_at IS NULL) THEN 'held'
END

-- name: slice
-- Reads one slice of a leaf: whether any of its halves is undecided, whether any was decided recently, and the
-- last xid that committed one of them.
SELECT coalesce(bool_or(o.half_id IS NULL), false),
    coalesce(bool_or(o.decided_at > clock_timestamp() - make_interval(secs => %(retention)s)), false),
    coalesce(max(o.xid) FILTER (WHERE o.decision = 1), 0)
FROM (SELECT half_id FROM outbox.half_message WHERE half_id >= %(low)s AND half_id < %(high)s) h
LEFT JOIN (
    SELECT half_id, xid, decided_at, decision FROM outbox.op_message WHERE half_id >= %(low)s AND half_id < %(high)s
) o USING (half_id)

-- name: readers
-- Returns which reader of the commit log has still to pass the leaf's rows or the commits of its halves (up to
-- last_xid). A relay shard counts by its stored position. A reconciliation counts by its own position, only if a
-- run has ever finished and no longer than the hold. Otherwise returns whether the retention since the commit or
-- the publication is not over. NULL: none.
WITH commits AS NOT MATERIALIZED (
    SELECT l.shard, l.xid, cardinality(l.half_ids) AS n, l.committed_at FROM outbox.commit_log l
    WHERE l.xid >= %(from_xid)s AND l.xid <= greatest(%(last_xid)s, %(to_xid)s - 1)
)
SELECT CASE
    WHEN EXISTS (
        SELECT FROM commits c LEFT JOIN outbox.progress p ON p.name = 'relay:' || c.shard
        WHERE (c.xid, c.n) > (coalesce(p.position, 0), coalesce(p.position_n, 0))) THEN 'relay'
    WHEN EXISTS (
        SELECT FROM commits WHERE xid < %(to_xid)s
            AND committed_at > clock_timestamp() - make_interval(secs => %(retention)s)) THEN 'young'
    WHEN EXISTS (
        SELECT FROM outbox.publication_log
        WHERE to_xid >= %(from_xid)s AND from_xid <= greatest(%(last_xid)s, %(to_xid)s - 1)
            AND published_at > clock_timestamp() - make_interval(secs => %(retention)s)) THEN 'young'
    WHEN EXISTS (
        SELECT FROM commits c JOIN outbox.progress p ON p.name = 'reconcile:' || c.shard
        WHERE (c.xid, c.n) > (p.position, p.position_n)
            AND c.committed_at > clock_timestamp() - make_interval(secs => %(retention)s + %(hold)s)) THEN 'reconcile'
END

-- name: free_transaction_ids
-- Deletes the transaction ids of one slice of a leaf, each by key.
DELETE FROM outbox.transaction_key k USING outbox.half_message h
WHERE h.half_id >= %(low)s AND h.half_id < %(high)s AND h.transaction_id IS NOT NULL
    AND k.producer_group_id = h.producer_group_id AND k.transaction_id = h.transaction_id AND k.half_id = h.half_id

-- name: forget_parked
-- Deletes the parked copies of a leaf that is removed: its halves are decided, and a copy would make them appear
-- undecided.
DELETE FROM outbox.parked_message WHERE half_id >= %(low)s AND half_id < %(high)s

-- name: forget_rechecks
-- Deletes the rounds of a leaf that is removed.
DELETE FROM outbox.recheck WHERE half_id >= %(low)s AND half_id < %(high)s

-- name: forget_released
-- Deletes the released records of a leaf that is removed; a record that is not released keeps its leaf.
DELETE FROM outbox.held_record WHERE half_id >= %(low)s AND half_id < %(high)s AND released_at IS NOT NULL

-- name: exists
-- Reads the catalogue: whether a table exists.
SELECT to_regclass(%(table)s) IS NOT NULL
