-- A long reader must not let this wait, and all others behind it: run it again then.
SET LOCAL lock_timeout = '10s';

-- As before, but the transaction itself keeps its last id, and no table is read: of two SERIALIZABLE transactions that
-- publish at a time, PostgreSQL would refuse one, because each reads where the other writes. A savepoint that is rolled back
-- takes the setting back with its rows. Whoever sets it to another value breaks the key of no transaction but their own.
CREATE OR REPLACE FUNCTION outbox.next_half_id(shard bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    first CONSTANT bigint := outbox.current_xid() << 15;
    last CONSTANT bigint := nullif(current_setting('outbox.last_half_id', true), '');
    made bigint := first;
BEGIN
    IF last BETWEEN first AND first + 32767 THEN
        made := first + (((last - first) >> 4) + 1) * 16;
    END IF;
    IF made > first + (2047 << 4) THEN
        PERFORM outbox.refuse('a transaction may publish at most 2048 messages', '54000');
    END IF;
    made := made + next_half_id.shard % (SELECT i.shards FROM outbox.installation i);
    PERFORM set_config('outbox.last_half_id', made::text, true);
    RETURN made;
END $$;

-- As before, but the copy follows in sessions, too, whose role or database sets session_replication_role = replica.
CREATE OR REPLACE FUNCTION outbox.mirror_defaults() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    part record;
    last text;
BEGIN
    PERFORM outbox.keep_vacuum_away();
    LOCK TABLE outbox.half_message_default, outbox.op_message_default, outbox.commit_log_default,
        outbox.publication_log_default, outbox.check_attempt_default IN SHARE ROW EXCLUSIVE MODE;
    FOR part IN SELECT *, parent || '_default' AS stored FROM outbox.leaf_tables() LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER mirror AFTER INSERT OR UPDATE OR DELETE ON outbox.%I'
                       ' FOR EACH ROW EXECUTE FUNCTION outbox.mirror_row(%L, %L)',
                       part.stored, part.parent, part.identity);
        EXECUTE format('ALTER TABLE outbox.%I ENABLE ALWAYS TRIGGER mirror', part.stored);
        EXECUTE format('SELECT concat_ws('', '', %s) FROM outbox.%I ORDER BY %s DESC LIMIT 1',
                       part.identity, part.stored, replace(part.identity, ',', ' DESC,')) INTO last;
        INSERT INTO outbox.leaf_move (parent, last) VALUES (part.parent, last);
    END LOOP;
END $$;

-- Replaces end_frozen_sessions, and returns which sessions it has ended: the program by its name in pg_stat_activity, its
-- process in PostgreSQL, and the host that it connected from.
CREATE FUNCTION outbox.end_frozen_programs(seconds double precision)
RETURNS TABLE (program text, pid integer, host text) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    FOR program, pid, host IN
        SELECT session.application_name, session.pid, host(session.client_addr)
        FROM pg_stat_get_activity(NULL) AS session
        WHERE session.datid = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND session.backend_xid IS NOT NULL AND session.state = 'active'
            AND session.wait_event IN ('ClientRead', 'ClientWrite')
            AND session.query_start < clock_timestamp() - make_interval(secs => seconds)
            AND starts_with(session.application_name, 'outbox-')
            AND outbox.may_insert(session.usesysid, 'outbox.commit_log')
    LOOP
        BEGIN
            IF pg_terminate_backend(pid) THEN
                RETURN NEXT;
            END IF;
        EXCEPTION WHEN insufficient_privilege THEN NULL;
        END;
    END LOOP;
END $$;
REVOKE ALL ON FUNCTION outbox.end_frozen_programs FROM PUBLIC;
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'outbox_checker') THEN
        GRANT EXECUTE ON FUNCTION outbox.end_frozen_programs TO outbox_checker;
    END IF;
END $$;
