-- A long reader must not let this wait, and all others behind it: run it again then.
SET LOCAL lock_timeout = '10s';

-- Ends the sessions of our programs that have an xid, and have kept PostgreSQL waiting for so many seconds in the middle of
-- a statement: for the rows of a COPY, or until they read an answer. Their process is stopped; no limit for idle sessions
-- reaches them, and the watermark stands still meanwhile. Returns how many; leaves those whose role we may not end.
CREATE FUNCTION outbox.end_frozen_sessions(seconds double precision) RETURNS integer LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    frozen integer;
    ended integer := 0;
BEGIN
    FOR frozen IN
        SELECT session.pid FROM pg_stat_get_activity(NULL) AS session
        WHERE session.datid = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND session.backend_xid IS NOT NULL AND session.state = 'active'
            AND session.wait_event IN ('ClientRead', 'ClientWrite')
            AND session.query_start < clock_timestamp() - make_interval(secs => seconds)
            AND starts_with(session.application_name, 'outbox-')
            AND outbox.may_insert(session.usesysid, 'outbox.commit_log')
    LOOP
        BEGIN
            ended := ended + pg_terminate_backend(frozen)::integer;
        EXCEPTION WHEN insufficient_privilege THEN NULL;
        END;
    END LOOP;
    RETURN ended;
END $$;
