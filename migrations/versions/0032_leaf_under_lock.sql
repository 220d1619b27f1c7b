-- A long reader must not let this wait, and all others behind it: run it again then.
SET LOCAL lock_timeout = '10s';

-- As before, but locks the tables themselves, so that whoever reads or writes them waits before it looks up their leaves. One
-- that waited for a default leaf did not know the new leaf: it found no row there, and PostgreSQL refused its new rows. A
-- leaf that no transaction can use yet is made under the weaker lock, beside long readers.
CREATE OR REPLACE FUNCTION outbox.create_leaf(leaf bigint) RETURNS boolean LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms' AS $$
DECLARE
    part record;
    name text;
    alone boolean;
BEGIN
    IF outbox.move_defaults(50) <> 'none' OR to_regclass(format('outbox.half_message_%s', leaf)) IS NOT NULL THEN
        RETURN false;
    END IF;
    PERFORM outbox.keep_vacuum_away();
    IF leaf <= outbox.leaf_to_come() THEN
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
        EXECUTE format('SELECT EXISTS (SELECT FROM outbox.%I WHERE %I >= %s AND %I < %s)',
                       part.stored, part.key, part.low, part.key, part.high) INTO alone;
        IF alone THEN
            IF NOT outbox.no_audit() THEN
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
