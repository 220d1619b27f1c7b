-- name: topics
-- Reads the interned topic names: the topics that may contain our records.
SELECT name FROM outbox.topic ORDER BY name

-- name: installation_id
-- Reads which installation this is.
SELECT installation_id FROM outbox.installation

-- name: listed
-- Reads the relays' rows of the shards that have published, with the offset of the last manifest.
SELECT substr(name, 7)::int AS shard, position AS xid, position_n AS n, batch_no, manifest_offset
FROM outbox.progress
WHERE name LIKE 'relay:%' AND position > 0

-- name: relay_progress
-- Reads the row of each relay, and how many batches it may have published since: the row is written once a second. Each
-- of them has a commit after the position of the row or a held record, but for a sign of life and a new history.
SELECT relay.shard::int4, coalesce(relay.batch_no, 0) AS batch_no, 2 + (
    SELECT coalesce(sum(cardinality(c.half_ids)), 0) FROM outbox.reconciliation_commits c
    WHERE c.shard = relay.shard AND c.xid >= relay.position
) + (SELECT count(*) FROM outbox.held_record h WHERE h.shard = relay.shard) AS in_flight
FROM (
    SELECT substr(name, 7)::int2 AS shard, position, batch_no FROM outbox.progress
    WHERE starts_with(name, 'relay:')
) relay

-- name: export_snapshot
-- Fixes the snapshot of the transaction, so that other sessions can import it, and reads the time. Takes no xid.
SELECT pg_export_snapshot(), pg_current_snapshot()::text, clock_timestamp()

-- name: keep_leaves
-- Takes, shared, the session lock under which no leaf is removed and no row changes its leaf: a removal is not a change
-- that an older snapshot leaves out. Waits for one that has begun, which is short.
SELECT pg_advisory_lock_shared(hashtext('outbox.audit'), 0), set_config('idle_session_timeout', '0', false)

-- name: release_leaves
-- Frees that lock, in the session that has had it all the time.
SELECT pg_advisory_unlock_shared(hashtext('outbox.audit'), 0)

-- name: retired_below
-- Reads the catalogue for the lowest leaf of half messages that is still attached.
SELECT coalesce(min(substring(c.relname FROM '_(\d+)$')::bigint), 0) << 35
FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'outbox.half_message'::regclass AND c.relname ~ '_\d+$'

-- name: retired_leaves
-- Reads the numbers of the leaves that were removed.
SELECT leaf FROM outbox.retired_leaf

-- name: commits
-- Reads the rows of the commit log from a transaction of each shard on.
SELECT c.shard::int4, c.xid, c.committed_at, c.half_ids, c.content_digests
FROM unnest(%(shards)s::int[], %(xids)s::bigint[]) AS first (shard, xid)
JOIN outbox.reconciliation_commits c ON c.shard = first.shard AND c.xid >= first.xid
ORDER BY c.shard, c.xid

-- name: committed
-- Counts, by topic and producer group, the messages of the commit log after one position of each shard: those up to the
-- second one, and those above it.
SELECT h.topic, h.producer_group,
    count(*) FILTER (WHERE (c.xid, place.n) <= (span.xid, span.n)) AS committed,
    count(*) FILTER (WHERE (c.xid, place.n) > (span.xid, span.n)) AS lag
FROM outbox.reconciliation_commits c
JOIN unnest(%(shards)s::int[], %(from_xids)s::bigint[], %(from_ns)s::bigint[], %(xids)s::bigint[], %(ns)s::bigint[])
    AS span (shard, from_xid, from_n, xid, n) ON span.shard = c.shard
CROSS JOIN LATERAL unnest(c.half_ids) WITH ORDINALITY AS place (half_id, n)
LEFT JOIN outbox.reconciliation_halves h USING (half_id)
WHERE c.xid >= span.from_xid AND (c.xid, place.n) > (span.from_xid, span.from_n)
GROUP BY h.topic, h.producer_group

-- name: undecided
-- Counts the decisions that are not made, without a full scan: halves after the cursor of the sweep, queued checks, and
-- every half that was ever parked. Before the cursor every half is decided, queued or parked.
SELECT count(*) FILTER (WHERE NOT parked), count(*) FILTER (WHERE parked)
FROM (
    SELECT EXISTS (
        SELECT FROM outbox.parked_message p WHERE p.half_id = a.half_id AND p.resumed_at IS NULL) AS parked
    FROM (
        SELECT half_id FROM outbox.half_message
        WHERE half_id > coalesce((SELECT position FROM outbox.progress WHERE name = 'sweep'), 0) AND leader_id IS NULL
        UNION
        SELECT half_id FROM outbox.check_queue q
        WHERE EXISTS (SELECT FROM outbox.half_message h WHERE h.half_id = q.half_id)
        UNION
        SELECT half_id FROM outbox.parked_message
    ) a
    WHERE NOT EXISTS (SELECT FROM outbox.op_message o WHERE o.half_id = a.half_id)
) undecided

-- name: halves
-- Reads halves by key with their decisions; the bounds prune leaves.
SELECT * FROM outbox.reconciliation_halves
WHERE half_id = ANY (%(half_ids)s::int8[]) AND half_id BETWEEN %(low)s AND %(high)s

-- name: held_records
-- Reads held records by key, and the number of held records in each of their shards.
SELECT h.half_id, h.publish_error, h.held_at,
    h.released_at IS NOT NULL AS released, h.dropped_at IS NOT NULL AS dropped,
    h.repair, h.release_batch_no, h.released_partition, h.released_offset,
    (SELECT count(*) FROM outbox.held_record w
     WHERE w.shard = h.shard AND w.released_at IS NULL AND w.dropped_at IS NULL) AS waiting
FROM outbox.held_record h
WHERE h.half_id = ANY (%(half_ids)s::int8[])

-- name: already_published
-- Reads by key which ids the recovery of the relay found in Kafka.
SELECT half_id, nonce FROM outbox.already_published WHERE half_id = ANY (%(half_ids)s::int8[])

-- name: recorded_places
-- Reads where the relay recorded its records: the batches of the shard that end at or after the decision, of several the
-- newest. Their keys are read first, so that the arrays of each batch are read once, however many of its messages are
-- asked for.
WITH batch AS MATERIALIZED (
    SELECT DISTINCT found.shard, found.to_xid, found.to_n, found.batch_no
    FROM (
        SELECT DISTINCT (half_id & 15)::int2 AS shard, xid FROM outbox.op_message
        WHERE half_id = ANY (%(half_ids)s::int8[]) AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
    ) decided
    CROSS JOIN LATERAL (
        SELECT l.shard, l.to_xid, l.to_n, l.batch_no FROM outbox.publication_log l
        WHERE l.shard = decided.shard AND (l.to_xid, l.to_n) >= (decided.xid, 1)
        ORDER BY l.to_xid, l.to_n, l.batch_no
        LIMIT 16
    ) found
)
SELECT DISTINCT ON (half_id) half_id, place."partition", place."offset", batch_no
FROM batch
JOIN outbox.publication_log l USING (shard, to_xid, to_n, batch_no)
CROSS JOIN LATERAL unnest(l.half_ids, l.partitions, l.offsets) AS place (half_id, "partition", "offset")
WHERE half_id = ANY (%(half_ids)s::int8[])
ORDER BY half_id, to_xid DESC, to_n DESC, batch_no DESC

-- name: prepared_since
-- Reads the id from which on messages were prepared after the newest commit before a time and below a transaction id:
-- the clock may have been set back later. Without these, the lowest id.
SELECT coalesce(max(newest.xid), 0) << 15
FROM outbox.installation i CROSS JOIN generate_series(0, 15) AS each (shard)
CROSS JOIN LATERAL (
    SELECT c.xid FROM outbox.reconciliation_commits c
    WHERE c.shard = each.shard AND c.committed_at < %(since)s::timestamptz AND c.xid < %(before)s::int8 + i.base
    ORDER BY c.xid DESC
    LIMIT 1
) newest

-- name: unlogged
-- Reads messages from an id on that were decided COMMIT and that the commit log does not have. What was decided in a leaf
-- that is removed is left out: its row of the commit log is gone with the leaf. EXCEPT is hashed or sorted, whatever the
-- planner expects of the arrays.
WITH logged AS (
    SELECT unnest(half_ids) AS half_id FROM outbox.reconciliation_commits WHERE xid >= %(low)s >> 15
), unlogged AS (
    SELECT half_id FROM outbox.op_message WHERE decision = 1 AND half_id >= %(low)s
        AND xid >= %(retired_below)s >> 15 AND xid >> 20 <> ALL (%(retired)s::int8[])
    EXCEPT
    SELECT half_id FROM logged
)
SELECT half_id FROM unlogged ORDER BY half_id LIMIT 1000

-- name: unlogged_among
-- The same of these messages, by key.
SELECT o.half_id
FROM unnest(%(half_ids)s::int8[]) AS asked (half_id)
CROSS JOIN LATERAL (
    SELECT half_id, xid FROM outbox.op_message WHERE half_id = asked.half_id AND decision = 1 OFFSET 0
) o
WHERE o.xid >= %(retired_below)s >> 15 AND o.xid >> 20 <> ALL (%(retired)s::int8[])
    AND NOT EXISTS (
        SELECT FROM outbox.reconciliation_commits c
        WHERE c.shard = (o.half_id & 15)::int2 AND c.xid = o.xid AND o.half_id = ANY (c.half_ids))

-- name: changed
-- Compares the commit log from an id on with decisions and halves, none of which ever changes. Returns the commits whose
-- decision is missing, another one, or of another transaction, and those whose half is missing, has no known group and
-- topic, or has another digest.
-- What was removed with the leaf of its half is left out. Without the CTE the planner would expect the limit to end the
-- joins early, and look each row up by itself.
WITH changed AS MATERIALIZED (
    SELECT c.half_id, c.xid, c.n::int4, c.committed_at, c.digest, o.xid AS decided_in, h.content_digest, o.decision
    FROM (
        SELECT l.xid, l.committed_at, i.half_id, i.digest, i.n
        FROM outbox.reconciliation_commits l
        CROSS JOIN LATERAL unnest(l.half_ids, l.content_digests) WITH ORDINALITY AS i (half_id, digest, n)
        WHERE l.xid >= %(low)s >> 15
    ) c
    LEFT JOIN outbox.op_message o ON o.half_id = c.half_id
    LEFT JOIN outbox.reconciliation_halves h ON h.half_id = c.half_id
    WHERE c.half_id >= %(retired_below)s AND c.half_id >> 35 <> ALL (%(retired)s::int8[])
        AND (o.decision, o.xid, h.content_digest) IS DISTINCT FROM (1::int2, c.xid, c.digest)
)
SELECT * FROM changed ORDER BY half_id LIMIT 1000
