-- Leaves that were removed. What was unfinished in one is in the default leaf of its table.
CREATE TABLE outbox.retired_leaf (
    leaf bigint CONSTRAINT pk_retired_leaf PRIMARY KEY,
    retired_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'outbox_reconcile') THEN
        GRANT SELECT ON outbox.retired_leaf TO outbox_reconcile;
    END IF;
END $$;

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
SELECT 'op_message' AS table_name, (
    SELECT half_id >> 35 FROM outbox.op_message_default
    WHERE half_id >= (SELECT leaf << 35 FROM oldest) AND half_id >> 35 NOT IN (SELECT leaf FROM outbox.retired_leaf)
    ORDER BY half_id LIMIT 1) AS leaf
UNION ALL
SELECT 'commit_log' AS table_name, (
    SELECT xid >> 20 FROM outbox.commit_log_default
    WHERE xid >= (SELECT leaf << 20 FROM oldest) AND xid >> 20 NOT IN (SELECT leaf FROM outbox.retired_leaf)
    ORDER BY xid LIMIT 1) AS leaf
UNION ALL
SELECT 'publication_log' AS table_name, (
    SELECT to_xid >> 20 FROM outbox.publication_log_default
    WHERE to_xid >= (SELECT leaf << 20 FROM oldest) AND to_xid >> 20 NOT IN (SELECT leaf FROM outbox.retired_leaf)
    ORDER BY to_xid LIMIT 1) AS leaf
UNION ALL
SELECT 'check_attempt' AS table_name, (
    SELECT half_id >> 35 FROM outbox.check_attempt_default
    WHERE half_id >= (SELECT leaf << 35 FROM oldest) AND half_id >> 35 NOT IN (SELECT leaf FROM outbox.retired_leaf)
    ORDER BY half_id LIMIT 1) AS leaf;

-- Creates the leaf that holds based xids [leaf << 20, (leaf + 1) << 20) of all five partitioned tables, if it is
-- missing, and moves the rows of this range into it that are in the default leaves. Locks first, in the order in which
-- prepare and end do: each lock is waited for at most 50 ms, and this is all the time that the xid of the transaction
-- holds the watermark back for a reader. Raises lock_not_available: nothing was changed, try again.
-- An audit with an older snapshot would look for moved rows in the new leaf, and would not see them there.
CREATE OR REPLACE FUNCTION outbox.create_leaf(leaf bigint) RETURNS boolean LANGUAGE plpgsql SET lock_timeout = '50ms' AS $$
DECLARE
    parent text;
    shift integer;
    name text;
    key text;
    storage text;
    alone boolean;
BEGIN
    IF to_regclass(format('outbox.half_message_%s', leaf)) IS NOT NULL THEN
        RETURN false;
    END IF;
    LOCK TABLE ONLY outbox.half_message, ONLY outbox.op_message, ONLY outbox.commit_log, ONLY outbox.publication_log,
        ONLY outbox.check_attempt IN SHARE UPDATE EXCLUSIVE MODE;
    LOCK TABLE outbox.half_message_default, outbox.op_message_default, outbox.commit_log_default,
        outbox.publication_log_default, outbox.check_attempt_default IN ACCESS EXCLUSIVE MODE;
    IF to_regclass(format('outbox.half_message_%s', leaf)) IS NOT NULL THEN
        RETURN false;
    END IF;
    FOREACH parent IN ARRAY ARRAY['half_message', 'op_message', 'commit_log', 'publication_log', 'check_attempt'] LOOP
        name := format('%s_%s', parent, leaf);
        key := CASE parent WHEN 'commit_log' THEN 'xid' WHEN 'publication_log' THEN 'to_xid' ELSE 'half_id' END;
        shift := CASE WHEN parent IN ('commit_log', 'publication_log') THEN 20 ELSE 35 END;
        storage := CASE WHEN parent IN ('half_message', 'op_message', 'commit_log')
                        THEN ' WITH (fillfactor = 100, autovacuum_enabled = off)' ELSE '' END;
        EXECUTE format('CREATE TABLE outbox.%I (LIKE outbox.%I INCLUDING ALL)%s', name, parent, storage);
        EXECUTE format('SELECT EXISTS (SELECT FROM outbox.%I WHERE %I >= %s AND %I < %s)',
                       parent || '_default', key, leaf << shift, key, (leaf + 1) << shift) INTO alone;
        IF alone THEN
            IF NOT pg_try_advisory_xact_lock(hashtext('outbox.audit'), 0) THEN
                RAISE lock_not_available USING MESSAGE = 'an audit may still read the rows that have no leaf';
            END IF;
            EXECUTE format('WITH moved AS (DELETE FROM outbox.%I WHERE %I >= %s AND %I < %s RETURNING *)'
                           ' INSERT INTO outbox.%I SELECT * FROM moved',
                           parent || '_default', key, leaf << shift, key, (leaf + 1) << shift, name);
        END IF;
        EXECUTE format('ALTER TABLE outbox.%I ATTACH PARTITION outbox.%I FOR VALUES FROM (%s) TO (%s)',
                       parent, name, leaf << shift, (leaf + 1) << shift);
    END LOOP;
    RETURN true;
END $$;

-- Creates the leaf of the watermark, those up to the newest xid, and the next ones; returns how many were missing.
CREATE OR REPLACE FUNCTION outbox.create_leaves(ahead integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    newest bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint + (SELECT base FROM outbox.installation);
    made integer := 0;
BEGIN
    FOR leaf IN (outbox.watermark() >> 20) .. (newest >> 20) + ahead LOOP
        made := made + outbox.create_leaf(leaf)::integer;
    END LOOP;
    RETURN made;
END $$;
