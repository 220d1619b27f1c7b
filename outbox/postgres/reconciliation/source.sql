-- name: topics
-- Reads the interned topic names: what may hold our records.
SELECT name FROM outbox.topic ORDER BY name

-- name: unlisted
-- Reads the relays' rows that no manifest confirms: shards in the lane at_least_once (manifest offset -1), or
-- just out of it, before their first manifest (crc 0).
SELECT substr(name, 7)::int AS shard, position AS xid, position_n AS n, batch_no
FROM outbox.progress
WHERE name LIKE 'relay:%' AND position > 0 AND (manifest_offset = -1 OR (manifest_offset >= 0 AND crc = 0))

-- name: export_snapshot
-- Fixes what the transaction sees and lets other sessions import it. Takes no xid.
SELECT pg_export_snapshot(), pg_current_snapshot()::text, clock_timestamp()

-- name: retired_below
-- Reads the catalogue for the lowest leaf of half messages that is still attached.
SELECT coalesce(min(substring(c.relname FROM '_(\d+)$')::bigint), 0) << 35
FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'outbox.half_message'::regclass AND c.relname ~ '_\d+$'

-- name: undecided
-- Reads all halves against all ops: one anti-join, the only full scan here.
SELECT count(*) FILTER (WHERE NOT parked), count(*) FILTER (WHERE parked) FROM outbox.reconciliation_open

-- name: undecided_ahead
-- Counts the same without history: halves beyond the sweep's cursor, queued checks beyond the cursor of their class,
-- and what was ever parked. Behind the cursors every half is decided, queued anew or parked.
WITH swept AS MATERIALIZED (
    SELECT coalesce((SELECT position FROM outbox.progress WHERE name = 'sweep'), 0) AS position
), asked AS (
    SELECT half_id FROM outbox.half_message WHERE half_id > (SELECT position FROM swept)
    UNION
    SELECT q.half_id
    FROM outbox.check_class c
    CROSS JOIN LATERAL (
        SELECT half_id FROM outbox.check_queue
        WHERE producer_group_id = c.producer_group_id AND delay_seconds = c.delay_seconds AND id > c.position
    ) q
    WHERE EXISTS (SELECT FROM outbox.half_message h WHERE h.half_id = q.half_id)
    UNION
    SELECT half_id FROM outbox.parked_message
)
SELECT count(*) FILTER (WHERE NOT parked), count(*) FILTER (WHERE parked)
FROM (
    SELECT EXISTS (
        SELECT FROM outbox.parked_message p WHERE p.half_id = a.half_id AND p.resumed_at IS NULL) AS parked
    FROM asked a
    WHERE NOT EXISTS (SELECT FROM outbox.op_message o WHERE o.half_id = a.half_id)
) undecided

-- name: halves
-- Reads halves by key with their decisions; the bounds prune leaves.
SELECT * FROM outbox.reconciliation_halves
WHERE half_id = ANY (%(half_ids)s::int8[]) AND half_id BETWEEN %(low)s AND %(high)s

-- name: holds
-- Reads held records by key, and how many are held in each of their shards.
SELECT h.half_id, h.publish_error, h.held_at, h.attempts,
    h.released_at IS NOT NULL AS released, h.dropped_at IS NOT NULL AS dropped,
    h.repair IS NOT NULL AS repaired,
    (SELECT count(*) FROM outbox.held_record w
     WHERE w.shard = h.shard AND w.released_at IS NULL AND w.dropped_at IS NULL) AS waiting
FROM outbox.held_record h
WHERE h.half_id = ANY (%(half_ids)s::int8[])

-- name: already_published
-- Reads by key which ids the relay's recovery had found in Kafka.
SELECT half_id, nonce FROM outbox.already_published WHERE half_id = ANY (%(half_ids)s::int8[])

-- name: places
-- Reads where the relay noted its records: the batches of the shard that end at or beyond the decision.
SELECT asked.half_id, batch.partitions[batch.at] AS "partition", batch.offsets[batch.at] AS "offset", batch.batch_no
FROM unnest(%(half_ids)s::int8[]) AS asked (half_id)
CROSS JOIN LATERAL (
    SELECT xid FROM outbox.op_message
    WHERE half_id = asked.half_id AND half_id BETWEEN %(low)s AND %(high)s OFFSET 0
) o
CROSS JOIN LATERAL (
    SELECT l.partitions, l.offsets, l.batch_no, array_position(l.half_ids, asked.half_id) AS at
    FROM outbox.publication_log l
    WHERE l.shard = (asked.half_id & 15)::int2 AND (l.to_xid, l.to_n) >= (o.xid, 1)
    ORDER BY l.to_xid, l.to_n, l.batch_no
    LIMIT 16
) batch
WHERE batch.at IS NOT NULL

-- name: past
-- Reads the newest runs but this one, with how many discrepancies each had.
SELECT r.run_id, r.finished_at, r.verdict,
    (SELECT coalesce(sum(value::bigint), 0) FROM jsonb_each_text(r.totals))::bigint AS open
FROM outbox.reconciliation_run r
WHERE r.run_id <> %(run_id)s
ORDER BY r.finished_at DESC, r.run_id DESC
LIMIT %(limit)s

-- name: log_state
-- Reads what the newest run left behind of the log.
SELECT plan -> 'log' FROM outbox.reconciliation_run WHERE plan ? 'log' ORDER BY finished_at DESC, run_id DESC LIMIT 1

-- name: before
-- Reads the newest run but this one, and which of these findings are open.
SELECT r.run_id, r.verdict, ARRAY(
    SELECT f.finding_id FROM outbox.reconciliation_finding f
    WHERE f.finding_id = ANY (%(finding_ids)s::text[]) AND f.status = 'open') AS open_before
FROM outbox.reconciliation_run r
WHERE r.run_id <> %(run_id)s
ORDER BY r.finished_at DESC, r.run_id DESC
LIMIT 1

-- name: ever
-- Reads how many findings were new and resolved in all runs up to the newest one, by kind, and up to which event.
SELECT plan -> 'ever', coalesce((plan ->> 'last_event')::int8, 0) FROM outbox.reconciliation_run WHERE plan ? 'ever' ORDER BY finished_at DESC, run_id DESC LIMIT 1

-- name: save_run
-- Writes the run and up to which event of findings it counts; a repetition of the same run replaces it, but counts
-- nothing twice.
INSERT INTO outbox.reconciliation_run AS known (
    run_id, previous_run_id, mode, started_at, cut_at, verdict, sentence, complete, plan, counts, totals, timings)
VALUES (%(run_id)s, %(previous_run_id)s, %(mode)s, %(started_at)s, %(cut_at)s, %(verdict)s, %(sentence)s, %(complete)s,
    %(plan)s || jsonb_build_object('last_event', (SELECT coalesce(max(id), 0) FROM outbox.reconciliation_finding_event)),
    %(counts)s, %(totals)s, %(timings)s)
ON CONFLICT (run_id) DO UPDATE SET (
    previous_run_id, mode, started_at, cut_at, finished_at, verdict, sentence, complete, plan, counts, totals, timings)
    = (excluded.previous_run_id, excluded.mode, excluded.started_at, excluded.cut_at, clock_timestamp(), excluded.verdict, excluded.sentence,
       excluded.complete, excluded.plan || jsonb_strip_nulls(jsonb_build_object(
           'ever', known.plan -> 'ever', 'last_event', known.plan -> 'last_event')),
       excluded.counts, excluded.totals, excluded.timings)

-- name: save_report
-- Writes one format of the report.
INSERT INTO outbox.reconciliation_report (run_id, format, body) VALUES (%(run_id)s, %(format)s, %(body)s)
ON CONFLICT (run_id, format) DO UPDATE SET body = excluded.body

-- name: forget_reports
-- Deletes the reports of all but the last 30 runs.
DELETE FROM outbox.reconciliation_report WHERE run_id NOT IN (
    SELECT run_id FROM outbox.reconciliation_run ORDER BY finished_at DESC LIMIT 30)

-- name: set_timeout
-- Bounds the session, as far as this server knows the setting.
SELECT set_config(name, %(value)s, false) FROM pg_settings WHERE name = %(name)s
