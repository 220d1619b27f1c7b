-- name: leaves
-- Reads from the catalogue the numbers of the leaves whose tables exist, oldest first: a removal that a crash
-- interrupted leaves some that are detached.
SELECT substring(relname FROM '\d+$')::int8
FROM pg_class
WHERE relnamespace = 'outbox'::regnamespace AND relkind = 'r' AND relname ~ '^half_message_\d+$'
ORDER BY 1

-- name: attached
-- Reads from the catalogue which tables of a leaf are still attached.
SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE c.relnamespace = 'outbox'::regnamespace AND c.relname = ANY (%(tables)s)

-- name: young_from
-- Reads since when the retention is not over.
SELECT clock_timestamp() - make_interval(secs => %(retention)s) AS young_from

-- name: blocked_by
-- Returns why a leaf must stay; the conditions that are cheap to read come first: a transaction that may still write to
-- it, a recent message, a message that the sweep has not passed, more held records or undecided halves than one removal
-- moves, a recent decision. Then each reader of the commit log that has still to pass the leaf's rows or the commits of
-- its halves: a relay shard by its stored position, and a reconciliation if a run has ever finished; and a recent commit
-- or publication. NULL: none of these. Locks nothing.
WITH ended AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE o.half_id IS NULL) AS undecided, bool_or(o.decided_at > %(young_from)s) AS young,
        greatest(max(o.xid) FILTER (WHERE o.decision = 1), %(to_xid)s - 1) AS last_xid
    FROM (SELECT half_id FROM outbox.half_message WHERE half_id >= %(low)s AND half_id < %(high)s) h
    LEFT JOIN (
        SELECT half_id, xid, decided_at, decision FROM outbox.op_message WHERE half_id >= %(low)s AND half_id < %(high)s
    ) o USING (half_id)
), commits AS NOT MATERIALIZED (
    SELECT l.shard, l.xid, cardinality(l.half_ids) AS n, l.committed_at FROM outbox.commit_log l
    WHERE l.xid >= %(from_xid)s AND l.xid <= (SELECT last_xid FROM ended)
)
SELECT CASE
    WHEN outbox.watermark() < %(to_xid)s THEN 'in use'
    WHEN (SELECT prepared_at FROM outbox.half_message WHERE half_id >= %(low)s AND half_id < %(high)s
          ORDER BY half_id DESC LIMIT 1) > %(young_from)s THEN 'young'
    WHEN EXISTS (
        SELECT FROM outbox.half_message WHERE half_id >= %(low)s AND half_id < %(high)s
            AND half_id > coalesce((SELECT position FROM outbox.progress WHERE name = 'sweep'), 0)) THEN 'sweep'
    WHEN (SELECT count(*) FROM (
            SELECT FROM outbox.held_record
            WHERE half_id >= %(low)s AND half_id < %(high)s
                AND (released_at IS NULL OR released_at > %(young_from)s)
            LIMIT %(most)s + 1) held) > %(most)s THEN 'held'
    WHEN (SELECT young FROM ended) THEN 'young'
    WHEN (SELECT undecided FROM ended) > %(most)s THEN 'undecided'
    WHEN EXISTS (
        SELECT FROM commits c LEFT JOIN outbox.progress p ON p.name = 'relay:' || c.shard
        WHERE (c.xid, c.n) > (coalesce(p.position, 0), coalesce(p.position_n, 0))) THEN 'relay'
    WHEN EXISTS (
        SELECT FROM commits WHERE xid < %(to_xid)s AND committed_at > %(young_from)s) THEN 'young'
    WHEN EXISTS (
        SELECT FROM outbox.publication_log
        WHERE to_xid >= %(from_xid)s AND from_xid <= (SELECT last_xid FROM ended)
            AND published_at > %(young_from)s) THEN 'young'
    WHEN EXISTS (
        SELECT FROM commits c JOIN outbox.progress p ON p.name = 'reconcile:' || c.shard
        WHERE (c.xid, c.n) > (p.position, p.position_n)) THEN 'reconcile'
END

-- name: unfinished
-- Reads the halves of a leaf that are undecided, or were at the last look at what the leaf waits for: no half of it was
-- decided within the retention then, so a decision within the retention came after that look, and the relay has still
-- to publish its message. And those whose records were held and are in no topic, or were published within the retention.
SELECT h.half_id FROM outbox.half_message h
WHERE h.half_id >= %(low)s AND h.half_id < %(high)s
    AND NOT EXISTS (
        SELECT FROM outbox.op_message o
        WHERE o.half_id = h.half_id AND o.half_id >= %(low)s AND o.half_id < %(high)s
            AND o.decided_at <= %(young_from)s)
UNION
SELECT half_id FROM outbox.held_record
WHERE half_id >= %(low)s AND half_id < %(high)s
    AND (released_at IS NULL OR released_at > %(young_from)s)

-- name: watermark
-- Reads the watermark: what is not visible yet to a later reader has a higher xid, or this one.
SELECT outbox.watermark()

-- name: unfinished_since
-- Reads the halves of a leaf that an xid or a later one has committed, by key, and again those of held records. SQL mode
-- may admit a message whose transaction has an xid of this leaf at any time, however old that transaction is.
SELECT committed.half_id
FROM outbox.commit_log l CROSS JOIN LATERAL unnest(l.half_ids) AS committed (half_id)
WHERE l.shard = ANY ('{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}'::int2[]) AND l.xid >= %(since)s
    AND committed.half_id >= %(low)s AND committed.half_id < %(high)s
UNION
SELECT half_id FROM outbox.held_record
WHERE half_id >= %(low)s AND half_id < %(high)s
    AND (released_at IS NULL OR released_at > %(young_from)s)

-- name: free_ids
-- Deletes, of one slice of a leaf and each by key, the transaction ids and the committed messages that the relay's recovery
-- found in Kafka, except those of unfinished messages. PostgreSQL has not lost what was found; once their halves are gone,
-- nothing would show that.
WITH recovered AS (
    DELETE FROM outbox.already_published a USING outbox.half_message h, outbox.op_message o
    WHERE a.half_id >= %(low)s AND a.half_id < %(high)s AND a.half_id <> ALL (%(kept)s::int8[])
        AND h.half_id >= %(low)s AND h.half_id < %(high)s AND h.half_id = a.half_id AND h.nonce = a.nonce
        AND o.half_id >= %(low)s AND o.half_id < %(high)s AND o.half_id = a.half_id AND o.decision = 1
)
DELETE FROM outbox.transaction_key k USING outbox.half_message h
WHERE h.half_id >= %(low)s AND h.half_id < %(high)s AND h.transaction_id IS NOT NULL
    AND k.producer_group_id = h.producer_group_id AND k.transaction_id = h.transaction_id AND k.half_id = h.half_id
    AND k.half_id <> ALL (%(kept)s::int8[])

-- name: no_audit
-- Takes, until the transaction ends and without waiting, the lock that an audit shares while it may read any leaf.
SELECT pg_try_advisory_xact_lock(hashtext('outbox.audit'), 0)

-- name: lock_tables
-- Locks the partitioned tables, in the order in which prepare and end do, so that nobody reads or writes any leaf.
SELECT outbox.lock_leaves()

-- name: detach
-- Detaches a leaf's tables, puts the rows of unfinished messages into the default leaves, and notes the leaf as removed:
-- its rows in the default leaves belong there.
SELECT outbox.detach_leaf(%(leaf)s, %(kept)s::int8[])

-- name: drop
-- Drops one detached table of a leaf, if it is still there.
SELECT outbox.drop_leaf(%(table)s, %(leaf)s)

-- name: forget
-- Deletes the parked copies, rounds and released records of a leaf that is removed, except those of unfinished messages:
-- a decided half would appear undecided.
WITH parked AS (
    DELETE FROM outbox.parked_message
    WHERE half_id >= %(low)s AND half_id < %(high)s AND half_id <> ALL (%(kept)s::int8[])
), rounds AS (
    DELETE FROM outbox.recheck
    WHERE half_id >= %(low)s AND half_id < %(high)s AND half_id <> ALL (%(kept)s::int8[])
)
DELETE FROM outbox.held_record
WHERE half_id >= %(low)s AND half_id < %(high)s AND half_id <> ALL (%(kept)s::int8[])

-- name: forget_finished
-- Deletes a bounded number of evacuated messages, with all that is kept of them, of which the leaf of the decision was
-- removed too: then relay, reconciliation and retention have passed it. The retention of a held message begins with its
-- publication. Reads the default leaf of the halves, and what belongs to each by key.
WITH gone AS MATERIALIZED (
    SELECT h.half_id, h.producer_group_id, h.transaction_id
    FROM outbox.half_message_default h CROSS JOIN LATERAL (
        SELECT xid FROM outbox.op_message_default o WHERE o.half_id = h.half_id OFFSET 0
    ) decided
    WHERE h.half_id >> 35 IN (SELECT leaf FROM outbox.retired_leaf)
        AND decided.xid >> 20 IN (SELECT leaf FROM outbox.retired_leaf)
        AND NOT EXISTS (
            SELECT FROM outbox.held_record r
            WHERE r.half_id = h.half_id AND (r.released_at IS NULL
                OR r.released_at > clock_timestamp() - make_interval(secs => %(retention)s)) OFFSET 0)
    ORDER BY h.half_id LIMIT 1000
), keys AS (
    DELETE FROM outbox.transaction_key k USING gone
    WHERE k.producer_group_id = gone.producer_group_id AND k.transaction_id = gone.transaction_id
        AND k.half_id = gone.half_id
), halves AS (
    DELETE FROM outbox.half_message_default WHERE half_id = ANY (ARRAY(SELECT half_id FROM gone))
), attempts AS (
    DELETE FROM outbox.check_attempt_default WHERE half_id = ANY (ARRAY(SELECT half_id FROM gone))
), parked AS (
    DELETE FROM outbox.parked_message WHERE half_id = ANY (ARRAY(SELECT half_id FROM gone))
), rounds AS (
    DELETE FROM outbox.recheck WHERE half_id = ANY (ARRAY(SELECT half_id FROM gone))
), held AS (
    DELETE FROM outbox.held_record WHERE half_id = ANY (ARRAY(SELECT half_id FROM gone))
)
SELECT outbox.forget_decisions(array_agg(half_id)) FROM gone

-- name: forget_places
-- Deletes where records were published, once their retention is over, of batches that ended in a leaf that had gone by
-- then: a release has the position where its shard stood.
DELETE FROM outbox.publication_log_default
WHERE to_xid >> 20 IN (SELECT leaf FROM outbox.retired_leaf)
    AND published_at <= clock_timestamp() - make_interval(secs => %(retention)s)
