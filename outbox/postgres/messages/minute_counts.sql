-- name: add
-- Adds counts of groups and keys to their rows of the present minute. Sorted, so that two writers cannot deadlock.
INSERT INTO outbox.activity AS a (minute, producer_group_id, key_id,
    prepared, committed, rolled_back, published, parked, check_commit, check_rollback, check_unknown,
    check_bad_verdict, check_http_error, check_timeout, check_unreachable, check_blocked)
SELECT date_trunc('minute', clock_timestamp()), producer_group_id, key_id,
    prepared, committed, rolled_back, published, parked, check_commit, check_rollback, check_unknown,
    check_bad_verdict, check_http_error, check_timeout, check_unreachable, check_blocked
FROM jsonb_populate_recordset(NULL::outbox.activity, %(rows)s)
ORDER BY producer_group_id, key_id
ON CONFLICT ON CONSTRAINT pk_activity DO UPDATE SET
    prepared = a.prepared + excluded.prepared, committed = a.committed + excluded.committed,
    rolled_back = a.rolled_back + excluded.rolled_back, published = a.published + excluded.published,
    parked = a.parked + excluded.parked, check_commit = a.check_commit + excluded.check_commit,
    check_rollback = a.check_rollback + excluded.check_rollback, check_unknown = a.check_unknown + excluded.check_unknown,
    check_bad_verdict = a.check_bad_verdict + excluded.check_bad_verdict, check_http_error = a.check_http_error + excluded.check_http_error,
    check_timeout = a.check_timeout + excluded.check_timeout, check_unreachable = a.check_unreachable + excluded.check_unreachable,
    check_blocked = a.check_blocked + excluded.check_blocked
