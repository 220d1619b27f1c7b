-- name: recheck
-- Begins a new round of an undecided half. The new round voids the older references; a parked half is resumed, and
-- then its spent checks and its age start again (otherwise they are kept). Appends a reference that is due now. Creates
-- the delay class "now" of the group if it is missing. recheck.rechecked_at is where the age starts. ``place`` numbers
-- the rechecks of this transaction. Locks the half's recheck row.
WITH flush AS MATERIALIZED (
    SELECT outbox.current_xid() AS xid, clock_timestamp() AS at
), half AS MATERIALIZED (
    SELECT half_id, producer_group_id, prepared_at FROM outbox.half_message WHERE half_id = %(half_id)s
), resumed AS (
    UPDATE outbox.parked_message SET resumed_at = flush.at
    FROM flush
    WHERE half_id = %(half_id)s AND resumed_at IS NULL
    RETURNING half_id
), renewed AS (
    INSERT INTO outbox.recheck AS r (half_id, round, rechecked_at)
    SELECT half_id, 2, CASE WHEN EXISTS (SELECT FROM resumed) THEN flush.at ELSE prepared_at END
    FROM half CROSS JOIN flush
    ON CONFLICT (half_id) DO UPDATE SET round = r.round + 1,
        rechecked_at = CASE WHEN EXISTS (SELECT FROM resumed) THEN excluded.rechecked_at ELSE r.rechecked_at END
    RETURNING half_id, round, rechecked_at
), opened AS (
    INSERT INTO outbox.check_class (producer_group_id, delay_seconds) SELECT producer_group_id, 0 FROM half ON CONFLICT DO NOTHING
)
INSERT INTO outbox.check_queue (
    producer_group_id, delay_seconds, id, half_id, round, check_count, only_unknown, age_from, due_at)
SELECT half.producer_group_id, 0, (flush.xid << 15) + %(place)s, half_id, renewed.round, spent.checks, spent.only_unknown,
    renewed.rechecked_at, flush.at
FROM half
JOIN renewed USING (half_id)
CROSS JOIN flush
CROSS JOIN LATERAL (
    SELECT count(*) AS checks, coalesce(bool_and(outcome = 'unknown'), true) AS only_unknown
    FROM outbox.check_attempt
    WHERE half_id = renewed.half_id AND counted AND NOT EXISTS (SELECT FROM resumed)
        AND (round = renewed.round - 1 OR asked_at >= renewed.rechecked_at)
) spent
RETURNING due_at

-- name: accept
-- Accepts a finding that is open, or accepted until another time, with an event of its history. Returns one row: whether
-- the time is past (then nothing is changed), and the cause, NULL if no finding was accepted.
WITH asked AS MATERIALIZED (
    SELECT %(until)s::timestamptz <= clock_timestamp() AS past
), accepted AS (
    UPDATE outbox.reconciliation_finding
    SET status = 'accepted', accepted_until = %(until)s, updated_at = clock_timestamp()
    FROM asked
    WHERE NOT past AND finding_id = %(finding_id)s AND status IN ('open', 'accepted')
        AND class || '/' || detail <> ALL (%(unread)s::text[])
    RETURNING finding_id, half_id, class, detail, severity, status
), noted AS (
    INSERT INTO outbox.reconciliation_finding_event (finding_id, event, class, detail, severity, status)
    SELECT finding_id, 'accepted', class, detail, severity, status FROM accepted
)
SELECT past, accepted.half_id, accepted.class || '/' || accepted.detail AS cause FROM asked LEFT JOIN accepted ON true
