-- name: by_minute
-- Adds up each minute of the last hour, also one without a row. "sums" are the sums of all counts.
SELECT minute, {sums}
FROM generate_series(date_trunc('minute', clock_timestamp()) - interval '59 minutes',
    date_trunc('minute', clock_timestamp()), interval '1 minute') AS minutes (minute)
LEFT JOIN outbox.activity USING (minute)
GROUP BY minute
ORDER BY minute

-- name: by_group
-- Adds up the last hour by group, those with the busiest minutes first.
SELECT producer_group, max(prepared)::int8 AS busiest_minute, {sums}
FROM (
    SELECT g.name AS producer_group, {sums}
    FROM outbox.activity a JOIN outbox.producer_group g ON g.id = a.producer_group_id
    WHERE minute >= date_trunc('minute', clock_timestamp()) - interval '59 minutes'
    GROUP BY g.name, minute
) minutes
GROUP BY producer_group
ORDER BY 2 DESC, 1
LIMIT %(groups)s

-- name: by_key
-- Adds up what was prepared in the last hour by key, those with the busiest minutes first.
SELECT key_id, max(prepared)::int8 AS busiest_minute, sum(prepared)::int8 AS prepared
FROM (
    SELECT key_id, sum(prepared) AS prepared FROM outbox.activity
    WHERE minute >= date_trunc('minute', clock_timestamp()) - interval '59 minutes' AND key_id <> ''
    GROUP BY key_id, minute
) minutes
GROUP BY key_id
ORDER BY 2 DESC, 1
LIMIT %(groups)s

-- name: day
-- Adds up the last day.
SELECT {sums} FROM outbox.activity WHERE minute >= date_trunc('minute', clock_timestamp()) - interval '1 day'

-- name: forget
-- Deletes what is older than two days.
DELETE FROM outbox.activity WHERE minute < clock_timestamp() - interval '2 days'
