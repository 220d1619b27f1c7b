-- name: counter
-- Reads in one snapshot the id of the next transaction and the highest id that a position, a cursor or a row has: the
-- rows of progress and check_class, and of every other table the last entry of an index. Locks nothing, takes no xid.
-- How far an audit has come is left out: it is read from Kafka, which may be ahead after a promotion.
SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint + base AS following,
    coalesce(greatest(
        (SELECT max(position) FROM outbox.progress WHERE starts_with(name, 'relay:')),
        (SELECT position >> 15 FROM outbox.progress WHERE name = 'sweep'),
        (SELECT max(position) >> 15 FROM outbox.check_class),
        (SELECT max(last.id) >> 15
         FROM outbox.check_class c CROSS JOIN LATERAL (
            SELECT q.id FROM outbox.check_queue q
            WHERE q.producer_group_id = c.producer_group_id AND q.delay_seconds = c.delay_seconds
            ORDER BY q.id DESC LIMIT 1) last),
        (SELECT max(half_id) >> 15 FROM outbox.half_message),
        (SELECT max(half_id) >> 15 FROM outbox.plain_message),
        (SELECT max(half_id) >> 15 FROM outbox.parked_message),
        (SELECT max(last.xid)
         FROM generate_series(0, 15) AS s (shard) CROSS JOIN LATERAL (
            SELECT l.xid FROM outbox.commit_log l WHERE l.shard = s.shard ORDER BY l.xid DESC LIMIT 1) last)
    ), 0) AS highest
FROM outbox.installation

-- name: server
-- Reads the server's version, the settings that the guarantees need, the database's encoding, the session's process and
-- the clock.
SELECT current_setting('server_version_num')::integer AS version, current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS full_page_writes,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('max_prepared_transactions')::integer AS prepared_transactions, pg_backend_pid() AS backend_pid,
    current_setting('server_encoding') AS encoding, extract(epoch FROM clock_timestamp())::float8 AS clock
