-- name: judge
-- Reads findings by id, and their messages by key. On a topic without order no message can be overtaken. One pass
-- over the stored messages finds, for all findings together, whether a key has a newer committed message; a
-- message of the same flush counts as newer. A repair that the relay has published is pending until a run that began
-- after it has judged the message.
WITH asked AS MATERIALIZED (
    SELECT f.finding_id, f.status, f.class || '/' || f.detail AS cause, h.half_id, h.topic_id, h.key, o.xid,
        coalesce((f.evidence ->> 'ordered')::boolean, true) AS ordered,
        EXISTS (SELECT FROM outbox.held_record r
            WHERE r.half_id = f.half_id AND r.dropped_at IS NULL
                AND (r.released_at IS NULL OR r.repair IS NOT NULL AND r.released_at > least(seen.started_at, seen.cut_at))
        ) AS pending
    FROM outbox.reconciliation_finding f
    LEFT JOIN outbox.reconciliation_run seen ON seen.run_id = f.last_run_id
    LEFT JOIN LATERAL (
        SELECT half_id, producer_group_id, topic_id, key FROM outbox.half_message WHERE half_id = f.half_id OFFSET 0
    ) h ON true
    LEFT JOIN LATERAL (SELECT xid FROM outbox.op_message WHERE half_id = h.half_id AND decision = 1 OFFSET 0) o ON true
    WHERE f.finding_id = ANY (%(finding_ids)s::text[])
        AND (%(groups)s::int4[] IS NULL OR h.producer_group_id = ANY (%(groups)s::int4[]))
), overtaken AS MATERIALIZED (
    SELECT DISTINCT a.half_id
    FROM asked a
    JOIN outbox.half_message n ON n.topic_id = a.topic_id AND n.key = a.key AND n.half_id <> a.half_id
    JOIN outbox.op_message o ON o.half_id = n.half_id AND o.decision = 1 AND o.xid >= a.xid
    WHERE a.ordered AND NOT %(accept_order)s
)
SELECT a.finding_id, a.half_id, CASE
    WHEN a.status <> 'open' THEN 'not-open'
    WHEN a.cause <> ALL (%(causes)s::text[]) THEN 'not-lost'
    WHEN a.xid IS NULL THEN 'not-stored'
    WHEN a.pending THEN 'repair-pending'
    WHEN EXISTS (SELECT FROM overtaken v WHERE v.half_id = a.half_id) THEN 'order-risk'
    END AS refused
FROM asked a
ORDER BY a.finding_id

-- name: enter
-- Stores a committed message as held, marked as a repair. Does nothing if it is
-- already held, or if no open finding lists it as lost or altered, seen by a run that began after its last repair.
INSERT INTO outbox.held_record AS known (half_id, nonce, shard, topic_id, key, xid, n, publish_error, repair,
    next_attempt_at)
SELECT h.half_id, h.nonce, (h.half_id & 15)::int2, h.topic_id, h.key, o.xid,
    coalesce(array_position(c.half_ids, h.half_id), 1), 'to be published again, as a repair', %(repair)s, clock_timestamp()
FROM outbox.half_message h
JOIN outbox.op_message o ON o.half_id = h.half_id AND o.decision = 1
LEFT JOIN outbox.commit_log c ON c.shard = (h.half_id & 15)::int2 AND c.xid = o.xid
WHERE h.half_id = %(half_id)s AND EXISTS (
    SELECT FROM outbox.reconciliation_finding f
    LEFT JOIN outbox.reconciliation_run seen ON seen.run_id = f.last_run_id
    WHERE f.half_id = h.half_id AND f.status = 'open'
        AND f.class || '/' || f.detail = ANY (%(causes)s::text[])
        AND NOT EXISTS (SELECT FROM outbox.held_record r
            WHERE r.half_id = h.half_id AND r.repair IS NOT NULL AND r.released_at > least(seen.started_at, seen.cut_at)))
ON CONFLICT (half_id) DO UPDATE SET (held_at, publish_error, attempts, next_attempt_at, repair, topic_wide,
        released_at, release_batch_no, released_partition, released_offset, dropped_at, drop_reason)
    = (clock_timestamp(), excluded.publish_error, 0, excluded.next_attempt_at, excluded.repair, false,
        NULL, NULL, NULL, NULL, NULL, NULL)
WHERE known.released_at IS NOT NULL OR known.dropped_at IS NOT NULL
RETURNING half_id
