-- name: by_minute
-- Adds up the groups in each minute of the last hour, the oldest first. Reads at most a row for each group and minute.
SELECT m.minute,
    coalesce(sum(a.prepared), 0)::int8 AS prepared, coalesce(sum(a.committed), 0)::int8 AS committed,
    coalesce(sum(a.rolled_back), 0)::int8 AS rolled_back, coalesce(sum(a.published), 0)::int8 AS published,
    coalesce(sum(a.parked), 0)::int8 AS parked, coalesce(sum(a.check_commit), 0)::int8 AS check_commit,
    coalesce(sum(a.check_rollback), 0)::int8 AS check_rollback,
    coalesce(sum(a.check_unknown), 0)::int8 AS check_unknown,
    coalesce(sum(a.check_bad_verdict), 0)::int8 AS check_bad_verdict,
    coalesce(sum(a.check_http_error), 0)::int8 AS check_http_error,
    coalesce(sum(a.check_timeout), 0)::int8 AS check_timeout,
    coalesce(sum(a.check_unreachable), 0)::int8 AS check_unreachable,
    coalesce(sum(a.check_blocked), 0)::int8 AS check_blocked
FROM generate_series(date_trunc('minute', clock_timestamp()) - interval '59 minutes', clock_timestamp(), '1 minute')
    AS m (minute)
LEFT JOIN outbox.activity a ON a.minute = m.minute
GROUP BY m.minute ORDER BY m.minute

-- name: by_group
-- Adds up the last hour of each group; those with the busiest minutes first, up to a number.
SELECT g.name AS producer_group, max(prepared)::int8 AS busiest_minute,
    sum(prepared)::int8 AS prepared, sum(committed)::int8 AS committed, sum(rolled_back)::int8 AS rolled_back,
    sum(published)::int8 AS published, sum(parked)::int8 AS parked, sum(check_commit)::int8 AS check_commit,
    sum(check_rollback)::int8 AS check_rollback, sum(check_unknown)::int8 AS check_unknown,
    sum(check_bad_verdict)::int8 AS check_bad_verdict, sum(check_http_error)::int8 AS check_http_error,
    sum(check_timeout)::int8 AS check_timeout, sum(check_unreachable)::int8 AS check_unreachable,
    sum(check_blocked)::int8 AS check_blocked
FROM outbox.activity a JOIN outbox.producer_group g ON g.id = a.producer_group_id
WHERE minute >= date_trunc('minute', clock_timestamp()) - interval '59 minutes'
GROUP BY g.name ORDER BY busiest_minute DESC, g.name LIMIT %(groups)s

-- name: day
-- Adds up the last day of all groups.
SELECT
    coalesce(sum(prepared), 0)::int8 AS prepared, coalesce(sum(committed), 0)::int8 AS committed,
    coalesce(sum(rolled_back), 0)::int8 AS rolled_back, coalesce(sum(published), 0)::int8 AS published,
    coalesce(sum(parked), 0)::int8 AS parked, coalesce(sum(check_commit), 0)::int8 AS check_commit,
    coalesce(sum(check_rollback), 0)::int8 AS check_rollback, coalesce(sum(check_unknown), 0)::int8 AS check_unknown,
    coalesce(sum(check_bad_verdict), 0)::int8 AS check_bad_verdict,
    coalesce(sum(check_http_error), 0)::int8 AS check_http_error,
    coalesce(sum(check_timeout), 0)::int8 AS check_timeout,
    coalesce(sum(check_unreachable), 0)::int8 AS check_unreachable,
    coalesce(sum(check_blocked), 0)::int8 AS check_blocked
FROM outbox.activity WHERE minute >= date_trunc('minute', clock_timestamp()) - interval '1 day'
