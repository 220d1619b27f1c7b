-- name: minute
-- Returns the present minute.
SELECT date_trunc('minute', clock_timestamp())

-- name: add
-- Adds counts to the present minute of registered groups, in the order of their ids: two processes never wait for each
-- other in a circle.
INSERT INTO outbox.activity AS known (minute, producer_group_id,
    prepared, committed, rolled_back, published, parked, check_commit, check_rollback, check_unknown,
    check_bad_verdict, check_http_error, check_timeout, check_unreachable, check_blocked)
SELECT date_trunc('minute', clock_timestamp()), g.id,
    coalesce(prepared, 0), coalesce(committed, 0), coalesce(rolled_back, 0), coalesce(published, 0),
    coalesce(parked, 0), coalesce(check_commit, 0), coalesce(check_rollback, 0), coalesce(check_unknown, 0),
    coalesce(check_bad_verdict, 0), coalesce(check_http_error, 0), coalesce(check_timeout, 0),
    coalesce(check_unreachable, 0), coalesce(check_blocked, 0)
FROM jsonb_to_recordset(%(rows)s::jsonb) AS grown (producer_group text,
    prepared bigint, committed bigint, rolled_back bigint, published bigint, parked bigint, check_commit bigint,
    check_rollback bigint, check_unknown bigint, check_bad_verdict bigint, check_http_error bigint,
    check_timeout bigint, check_unreachable bigint, check_blocked bigint)
JOIN outbox.producer_group g ON g.name = grown.producer_group
ORDER BY g.id
ON CONFLICT (minute, producer_group_id) DO UPDATE SET
    prepared = known.prepared + excluded.prepared, committed = known.committed + excluded.committed,
    rolled_back = known.rolled_back + excluded.rolled_back, published = known.published + excluded.published,
    parked = known.parked + excluded.parked, check_commit = known.check_commit + excluded.check_commit,
    check_rollback = known.check_rollback + excluded.check_rollback,
    check_unknown = known.check_unknown + excluded.check_unknown,
    check_bad_verdict = known.check_bad_verdict + excluded.check_bad_verdict,
    check_http_error = known.check_http_error + excluded.check_http_error,
    check_timeout = known.check_timeout + excluded.check_timeout,
    check_unreachable = known.check_unreachable + excluded.check_unreachable,
    check_blocked = known.check_blocked + excluded.check_blocked

-- name: forget
-- Removes what is older than two days: a prefix of the key.
DELETE FROM outbox.activity WHERE minute < clock_timestamp() - interval '2 days'

-- name: count_committed
-- Adds an operator's decisions to the present minute of the groups of the messages.
INSERT INTO outbox.activity AS known (minute, producer_group_id, committed)
SELECT date_trunc('minute', clock_timestamp()), id, count(*) FROM unnest(%(group_ids)s::int4[]) AS id GROUP BY id ORDER BY id
ON CONFLICT (minute, producer_group_id) DO UPDATE SET committed = known.committed + excluded.committed

-- name: count_rolled_back
-- As ``count_committed``.
INSERT INTO outbox.activity AS known (minute, producer_group_id, rolled_back)
SELECT date_trunc('minute', clock_timestamp()), id, count(*) FROM unnest(%(group_ids)s::int4[]) AS id GROUP BY id ORDER BY id
ON CONFLICT (minute, producer_group_id) DO UPDATE SET rolled_back = known.rolled_back + excluded.rolled_back
