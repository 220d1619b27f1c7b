-- A long reader must not let this wait, and all others behind it: run it again then.
SET LOCAL lock_timeout = '10s';

-- As before, but reads only the ranges of the leaves that nobody has made: one index entry of each default leaf for each
-- of these ranges, and of each shard where the shard is the first column of the key. What is kept of removed leaves, in
-- between, is not read.
CREATE OR REPLACE FUNCTION outbox.rows_without_leaf(from_leaf bigint) RETURNS TABLE (table_name text, leaf bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    made bigint[];
    lows bigint[];
    highs bigint[];
    part record;
BEGIN
    SELECT coalesce(array_agg(substring(c.relname FROM '\d+$')::bigint), '{}') INTO made
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'outbox.half_message'::regclass AND c.relname ~ '^half_message_\d+$';
    SELECT array_agg(gap.low), array_agg(gap.high) INTO lows, highs
    FROM (
        SELECT known.leaf + 1 AS low, lead(known.leaf) OVER (ORDER BY known.leaf) - 1 AS high
        FROM (
            SELECT bound.first - 1 AS leaf
            FROM (SELECT greatest(coalesce(min(each), 0), from_leaf) AS first FROM unnest(made) AS each) bound
            UNION SELECT unnest(made)
            UNION SELECT r.leaf FROM outbox.retired_leaf r
        ) known
        WHERE known.leaf >= greatest(coalesce((SELECT min(each) FROM unnest(made) AS each), 0), from_leaf) - 1
    ) gap
    WHERE gap.high IS NULL OR gap.low <= gap.high;
    FOR part IN SELECT t.*, t.identity LIKE 'shard, %' AS by_shard FROM outbox.leaf_tables() t LOOP
        table_name := part.parent;
        EXECUTE format(
            'SELECT min(found.key) >> %2$s FROM unnest($1, $2) AS gap (low, high) CROSS JOIN generate_series(0, %4$s) AS s'
            ' CROSS JOIN LATERAL (SELECT %1$I AS key FROM outbox.%3$I WHERE %5$s %1$I >= gap.low << %2$s'
            ' AND %1$I <= coalesce(((gap.high + 1) << %2$s) - 1, 9223372036854775807) ORDER BY %1$I LIMIT 1) found',
            part.key, part.shift, part.parent || '_default', CASE WHEN part.by_shard THEN 15 ELSE 0 END,
            CASE WHEN part.by_shard THEN 'shard = s::smallint AND' ELSE '' END)
            INTO leaf USING lows, highs;
        RETURN NEXT;
    END LOOP;
END $$;
