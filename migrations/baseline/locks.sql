-- Advisory locks, in a database that strangers share: every role may take every advisory lock, whatever its key.

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

-- Keeps audits from beginning until the transaction ends; false while one may still read any leaf. A lock that strangers
-- alone have is no audit's.
CREATE FUNCTION outbox.no_audit() RETURNS boolean LANGUAGE sql VOLATILE
RETURN pg_try_advisory_xact_lock(hashtext('outbox.audit'), 0)
    OR outbox.only_strangers('outbox.audit', 0, 'outbox.reconciliation_run');
