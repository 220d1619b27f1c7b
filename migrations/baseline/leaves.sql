-- Leaves: half messages, ops, the commit log, the publication log and the check attempts are range partitions with equal
-- bounds. A leaf covers 2^20 transaction ids, is written once and leaves by DROP.

-- Leaves that were removed. What was unfinished in one is in the default leaf of its table.
CREATE TABLE outbox.retired_leaf (
    leaf bigint CONSTRAINT pk_retired_leaf PRIMARY KEY
);

-- A row that lands here means that nobody made leaves ahead: nothing is lost, but it alarms.
CREATE TABLE outbox.half_message_default PARTITION OF outbox.half_message DEFAULT;
CREATE TABLE outbox.op_message_default PARTITION OF outbox.op_message DEFAULT;
CREATE TABLE outbox.commit_log_default PARTITION OF outbox.commit_log DEFAULT;
CREATE TABLE outbox.publication_log_default PARTITION OF outbox.publication_log DEFAULT;
CREATE TABLE outbox.check_attempt_default PARTITION OF outbox.check_attempt DEFAULT;

-- The partitioned tables, in the order in which prepare and end lock them.
CREATE FUNCTION outbox.leaf_tables() RETURNS TABLE (parent text, key text, shift integer)
LANGUAGE sql IMMUTABLE AS $$
    VALUES ('half_message', 'half_id', 35), ('op_message', 'half_id', 35), ('commit_log', 'xid', 20),
        ('publication_log', 'to_xid', 20), ('check_attempt', 'half_id', 35)
$$;

-- The lowest leaf of which a table has rows in its default leaf, because nobody had made it. Rows of a leaf that was
-- removed, or is below the oldest one, belong there.
CREATE VIEW outbox.missing_leaf AS
WITH oldest AS MATERIALIZED (
    SELECT coalesce(min(substring(c.relname FROM '\d+$')::bigint), 0) AS leaf
    FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'outbox.half_message'::regclass AND c.relname ~ '^half_message_\d+$'
)
SELECT 'half_message' AS table_name, (
    SELECT half_id >> 35 FROM outbox.half_message_default
    WHERE half_id >= (SELECT leaf << 35 FROM oldest) AND half_id >> 35 NOT IN (SELECT leaf FROM outbox.retired_leaf)
    ORDER BY half_id LIMIT 1) AS leaf
UNION ALL
SELECT 'op_message', (
    SELECT half_id >> 35 FROM outbox.op_message_default
    WHERE half_id >= (SELECT leaf << 35 FROM oldest) AND half_id >> 35 NOT IN (SELECT leaf FROM outbox.retired_leaf)
    ORDER BY half_id LIMIT 1)
UNION ALL
SELECT 'commit_log', (
    SELECT xid >> 20 FROM outbox.commit_log_default
    WHERE xid >= (SELECT leaf << 20 FROM oldest) AND xid >> 20 NOT IN (SELECT leaf FROM outbox.retired_leaf)
    ORDER BY xid LIMIT 1)
UNION ALL
SELECT 'publication_log', (
    SELECT to_xid >> 20 FROM outbox.publication_log_default
    WHERE to_xid >= (SELECT leaf << 20 FROM oldest) AND to_xid >> 20 NOT IN (SELECT leaf FROM outbox.retired_leaf)
    ORDER BY to_xid LIMIT 1)
UNION ALL
SELECT 'check_attempt', (
    SELECT half_id >> 35 FROM outbox.check_attempt_default
    WHERE half_id >= (SELECT leaf << 35 FROM oldest) AND half_id >> 35 NOT IN (SELECT leaf FROM outbox.retired_leaf)
    ORDER BY half_id LIMIT 1);

-- Creates the leaf that holds based xids [leaf << 20, (leaf + 1) << 20) of all five partitioned tables, if it is missing,
-- and moves the rows of this range into it that are in the default leaves. Raises lock_not_available: nothing was changed,
-- try again. Raises program_limit_exceeded if a default leaf has more than `most` rows of it: every prepare waits while
-- rows are moved, about 10 s for a million, so an operator chooses the time and calls this with a higher number.
--
-- Locks the tables themselves, so that whoever reads or writes them waits before it looks up their leaves. One that
-- waited for a default leaf did not know the new leaf: it found no row there, and PostgreSQL refused its new rows. A leaf
-- that no transaction can use yet is made under the weaker lock, beside long readers.
CREATE FUNCTION outbox.create_leaf(leaf bigint, most integer DEFAULT 1000) RETURNS boolean LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms' AS $$
DECLARE
    next_leaf CONSTANT bigint := ((pg_snapshot_xmax(pg_current_snapshot())::text::bigint
        + (SELECT base FROM outbox.installation)) >> 20) + 1;
    part record;
    name text;
    alone bigint;
BEGIN
    IF leaf <= next_leaf THEN
        PERFORM outbox.lock_leaves();
    ELSE
        LOCK TABLE ONLY outbox.half_message, ONLY outbox.op_message, ONLY outbox.commit_log,
            ONLY outbox.publication_log, ONLY outbox.check_attempt IN SHARE UPDATE EXCLUSIVE MODE;
    END IF;
    LOCK TABLE outbox.half_message_default, outbox.op_message_default, outbox.commit_log_default,
        outbox.publication_log_default, outbox.check_attempt_default IN ACCESS EXCLUSIVE MODE;
    IF to_regclass(format('outbox.half_message_%s', leaf)) IS NOT NULL THEN
        RETURN false;
    END IF;
    FOR part IN
        SELECT *, parent || '_default' AS stored, leaf << shift AS low, (leaf + 1) << shift AS high
        FROM outbox.leaf_tables()
    LOOP
        name := format('%s_%s', part.parent, leaf);
        EXECUTE format('CREATE TABLE outbox.%I (LIKE outbox.%I INCLUDING ALL)%s', name, part.parent,
                       CASE WHEN part.parent IN ('half_message', 'op_message', 'commit_log')
                            THEN ' WITH (fillfactor = 100, autovacuum_enabled = off)' ELSE '' END);
        EXECUTE format('SELECT count(*) FROM (SELECT FROM outbox.%I WHERE %I >= %s AND %I < %s LIMIT %s + 1) few',
                       part.stored, part.key, part.low, part.key, part.high, most) INTO alone;
        IF alone > most THEN
            RAISE program_limit_exceeded USING MESSAGE = format('%s has more than %s rows of leaf %s', part.stored, most, leaf);
        ELSIF alone > 0 THEN
            IF NOT pg_try_advisory_xact_lock(hashtext('outbox.audit'), 0) THEN
                RAISE lock_not_available USING MESSAGE = 'an audit may still read the rows that have no leaf';
            END IF;
            EXECUTE format('WITH moved AS (DELETE FROM outbox.%I WHERE %I >= %s AND %I < %s RETURNING *)'
                           ' INSERT INTO outbox.%I SELECT * FROM moved',
                           part.stored, part.key, part.low, part.key, part.high, name);
        END IF;
        EXECUTE format('ALTER TABLE outbox.%I ATTACH PARTITION outbox.%I FOR VALUES FROM (%s) TO (%s)',
                       part.parent, name, part.low, part.high);
    END LOOP;
    RETURN true;
END $$;

-- Creates the leaf of the watermark, those up to the newest xid, and the next ones; returns how many were missing.
CREATE FUNCTION outbox.create_leaves(ahead integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    newest bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint + (SELECT base FROM outbox.installation);
    made integer := 0;
BEGIN
    FOR leaf IN (outbox.watermark() >> 20) .. (newest >> 20) + ahead LOOP
        made := made + outbox.create_leaf(leaf)::integer;
    END LOOP;
    RETURN made;
END $$;

-- Locks the partitioned tables, in the order in which prepare and end do, so that nobody reads or writes any leaf. The
-- caller bounds the wait.
CREATE FUNCTION outbox.lock_leaves() RETURNS void LANGUAGE sql VOLATILE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    LOCK TABLE ONLY outbox.half_message, ONLY outbox.op_message, ONLY outbox.commit_log, ONLY outbox.publication_log,
        ONLY outbox.check_attempt IN ACCESS EXCLUSIVE MODE
$$;

-- Detaches a leaf of the five tables, puts the rows of the kept halves into the default leaves, and notes the leaf as
-- retired; the caller has locked the tables. Refuses a leaf in which a transaction may still write.
CREATE FUNCTION outbox.detach_leaf(leaf bigint, kept bigint[]) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parent text;
    name text;
BEGIN
    IF outbox.watermark() < (leaf + 1) << 20 THEN
        RAISE object_in_use USING MESSAGE = format('leaf %s is in use', leaf);
    END IF;
    FOREACH parent IN ARRAY ARRAY['check_attempt', 'publication_log', 'commit_log', 'op_message', 'half_message'] LOOP
        name := format('%s_%s', parent, leaf);
        CONTINUE WHEN NOT EXISTS (
            SELECT FROM pg_inherits i WHERE i.inhrelid = to_regclass('outbox.' || name)
                AND i.inhparent = to_regclass('outbox.' || parent));
        EXECUTE format('ALTER TABLE outbox.%I DETACH PARTITION outbox.%I', parent, name);
        IF parent IN ('half_message', 'op_message', 'check_attempt') AND cardinality(kept) > 0 THEN
            EXECUTE format('INSERT INTO outbox.%I SELECT * FROM outbox.%I WHERE half_id = ANY ($1)', parent, name)
                USING kept;
        END IF;
    END LOOP;
    INSERT INTO outbox.retired_leaf (leaf) VALUES (detach_leaf.leaf) ON CONFLICT DO NOTHING;
END $$;

-- Drops one table of a leaf that is retired and detached, if it is still there.
CREATE FUNCTION outbox.drop_leaf(parent text, leaf bigint) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text := format('%s_%s', parent, leaf);
BEGIN
    IF parent NOT IN ('half_message', 'op_message', 'commit_log', 'publication_log', 'check_attempt')
        OR EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = to_regclass('outbox.' || name))
        OR NOT EXISTS (SELECT FROM outbox.retired_leaf r WHERE r.leaf = drop_leaf.leaf) THEN
        RAISE object_in_use USING MESSAGE = format('leaf %s of %s is not retired', leaf, parent);
    END IF;
    EXECUTE format('DROP TABLE IF EXISTS outbox.%I', name);
END $$;

-- Deletes the decisions, among the given halves, of evacuated messages whose leaves are retired, that of the decision
-- too; returns how many.
CREATE FUNCTION outbox.forget_decisions(half_ids bigint[]) RETURNS bigint LANGUAGE sql VOLATILE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH gone AS (
        DELETE FROM outbox.op_message_default o
        WHERE o.half_id = ANY (half_ids)
            AND o.half_id >> 35 IN (SELECT leaf FROM outbox.retired_leaf)
            AND o.xid >> 20 IN (SELECT leaf FROM outbox.retired_leaf)
        RETURNING 1
    )
    SELECT count(*) FROM gone
$$;

SELECT outbox.create_leaves(2);
