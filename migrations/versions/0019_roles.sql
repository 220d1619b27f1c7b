-- Whether a role may insert into a table, or may become a role that may.
CREATE FUNCTION outbox.may_insert(role oid, witness regclass) RETURNS boolean LANGUAGE sql STABLE STRICT
RETURN EXISTS (
    SELECT FROM pg_class c
    WHERE c.oid = witness AND (
        pg_has_role(role, c.relowner, 'MEMBER') OR has_any_column_privilege(role, c.oid, 'INSERT')
        OR EXISTS (SELECT FROM aclexplode(c.relacl) AS granted
                   WHERE granted.privilege_type = 'INSERT' AND granted.grantee <> 0
                       AND pg_has_role(role, granted.grantee, 'MEMBER'))));

-- Who has which advisory lock of this database. Every role may take every advisory lock, whatever its key.
CREATE VIEW outbox.lock_holder AS
SELECT l.classid::bigint AS first_key, l.objid::bigint AS second_key, l.objsubid = 2 AS two_keys, l.pid,
    session.usesysid AS role
FROM pg_locks l CROSS JOIN LATERAL pg_stat_get_activity(l.pid) AS session
WHERE l.locktype = 'advisory' AND l.granted
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database());

-- Whether a lock is taken, and by strangers alone: by roles that may not insert into the table that the lock's users
-- write. The lock has two keys, the hash of its kind and a number, or one: the hash, with NULL as number.
CREATE FUNCTION outbox.only_strangers(kind text, number integer, witness regclass) RETURNS boolean LANGUAGE sql STABLE
RETURN (
    SELECT coalesce(bool_and(NOT outbox.may_insert(holder.role, witness)), false)
    FROM outbox.lock_holder AS holder
    WHERE holder.two_keys = (number IS NOT NULL)
        AND holder.first_key = CASE WHEN number IS NULL AND hashtext(kind) >= 0 THEN 0
            WHEN number IS NULL THEN 4294967295 ELSE hashtext(kind)::bigint & 4294967295 END
        AND holder.second_key = coalesce(number, hashtext(kind))::bigint & 4294967295);

-- Waits for a lock of this transaction; false: strangers alone have it, for more than a second, so go on without it.
CREATE FUNCTION outbox.take_turn(kind text, number integer, shared boolean) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET lock_timeout = '1s' AS $$
BEGIN
    LOOP
        BEGIN
            IF shared THEN
                PERFORM pg_advisory_xact_lock_shared(hashtext(kind), number);
            ELSE
                PERFORM pg_advisory_xact_lock(hashtext(kind), number);
            END IF;
            RETURN true;
        EXCEPTION WHEN lock_not_available THEN
            IF outbox.only_strangers(kind, number, 'outbox.commit_log') THEN
                RETURN false;
            END IF;
        END;
    END LOOP;
END $$;

-- As before, but a stranger who has the lock of a group delays the flush by a second and does not stop it.
CREATE OR REPLACE FUNCTION outbox.begin_flush(
    groups integer[], OUT xid bigint, OUT at timestamptz, OUT deleted integer[]
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM outbox.take_turn('outbox.begin_flush', bucket, true)
    FROM (SELECT DISTINCT g & 63 AS bucket FROM unnest(groups) AS g ORDER BY 1) AS buckets
    WHERE NOT pg_try_advisory_xact_lock_shared(hashtext('outbox.begin_flush'), bucket);
    SELECT coalesce(array_agg(id), '{}') INTO deleted
    FROM outbox.producer_group WHERE id = ANY (groups) AND deleted_at IS NOT NULL;
    xid := outbox.current_xid();
    at := clock_timestamp();
END $$;

-- Waits until no other transaction admits messages of SQL mode, before this one has an xid. The table lock is what
-- decides: no stranger may take it. The advisory lock is what programs of the version before take; one that is held
-- for more than a second is a stranger's.
CREATE FUNCTION outbox.begin_admission() RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
BEGIN
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtext('outbox.plain_outbox'));
    EXCEPTION WHEN lock_not_available THEN NULL;
    END;
    PERFORM set_config('lock_timeout', '0', true);
    LOCK TABLE outbox.plain_publisher IN SHARE UPDATE EXCLUSIVE MODE;
END $$;

-- Keeps audits from beginning until the transaction ends; false while one may still read any leaf. A lock that strangers
-- alone have is no audit's.
CREATE FUNCTION outbox.no_audit() RETURNS boolean LANGUAGE sql VOLATILE
RETURN pg_try_advisory_xact_lock(hashtext('outbox.audit'), 0)
    OR outbox.only_strangers('outbox.audit', 0, 'outbox.reconciliation_run');

-- As before, for callers that do not own the tables, and with the rule above for the audit's lock.
CREATE OR REPLACE FUNCTION outbox.create_leaf(leaf bigint) RETURNS boolean LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms' AS $$
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
            IF NOT outbox.no_audit() THEN
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
