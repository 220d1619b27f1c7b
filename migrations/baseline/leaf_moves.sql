-- A default leaf with many rows cannot give them away under its lock: that would keep every prepare waiting. So its rows
-- are copied first, while it is used, and then the copy takes its place. `create_leaf` does one of these steps a call
-- until no step is left, whoever calls it:
--   stage    create PARENT_next, partitioned as PARENT, with an empty default leaf; one leaf a step
--   mirror   from now on, whatever is written to a default leaf is written to PARENT_next too
--   copy     copy what was in the default leaves by then, for some milliseconds a step
--   compare  check that both have the same number of rows, or begin again
--   replace  detach the old default leaf, and attach the new leaves and the new default leaf: no row moves
--   end      drop the old default leaf
-- The steps lock this table against one another, and a copy against deletions too. While rows are copied, it has a row for
-- each partitioned table: up to which key its rows are copied, and up to which they are to be. Both are values of the
-- columns of its primary key.
CREATE TABLE outbox.leaf_move (
    parent text CONSTRAINT pk_leaf_move PRIMARY KEY,
    "position" text,
    last text,
    compared boolean NOT NULL DEFAULT false
);
-- Whether a leaf exists, or will when the copy takes its place.
CREATE FUNCTION outbox.is_staged(leaf bigint) RETURNS boolean LANGUAGE sql STABLE
RETURN coalesce(to_regclass('outbox.half_message_' || leaf), to_regclass('outbox.half_message_next_' || leaf)) IS NOT NULL;
-- The leaves that the copy still needs: those of which a default leaf has rows, and those from the watermark's to the
-- one to come.
CREATE FUNCTION outbox.leaves_to_stage() RETURNS SETOF bigint LANGUAGE sql STABLE AS $$
    WITH RECURSIVE alone AS (
        SELECT min(leaf) AS leaf FROM outbox.missing_leaf
        UNION ALL
        SELECT (SELECT min(following.leaf) FROM outbox.rows_without_leaf(alone.leaf + 1) AS following)
        FROM alone WHERE alone.leaf IS NOT NULL
    ), wanted AS (
        SELECT leaf FROM alone WHERE leaf IS NOT NULL
        UNION
        SELECT generate_series(outbox.watermark() >> 20, outbox.leaf_to_come())
    )
    SELECT leaf FROM wanted WHERE NOT outbox.is_staged(leaf) ORDER BY leaf
$$;
-- What comes next: none, or one of the steps above. Default leaves are copied if one has more rows of other leaves than
-- may move under its lock: 1 000, or 32 MiB. While they are copied, the leaf to come is staged before any row needs it; if
-- nobody did that in time, the copy is dropped, and another is begun. Nothing is copied while a publication would publish
-- the copy too: its subscribers do not have that table.
CREATE FUNCTION outbox.leaf_move_step() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    part record;
    many boolean;
BEGIN
    IF to_regclass('outbox.half_message_replaced') IS NOT NULL THEN
        RETURN 'end';
    ELSIF EXISTS (SELECT FROM outbox.leaf_move) THEN
        RETURN (SELECT CASE
                WHEN NOT outbox.is_staged(outbox.leaf_to_come() - 1) THEN 'end'
                WHEN NOT outbox.is_staged(outbox.leaf_to_come()) THEN 'stage'
                WHEN bool_or("position" IS DISTINCT FROM last) THEN 'copy'
                WHEN NOT bool_and(compared) THEN 'compare'
                ELSE 'replace' END
            FROM outbox.leaf_move);
    ELSIF to_regclass('outbox.half_message_next') IS NOT NULL THEN
        RETURN (SELECT CASE WHEN EXISTS (SELECT outbox.leaves_to_stage()) THEN 'stage' ELSE 'mirror' END);
    ELSIF EXISTS (SELECT FROM pg_publication WHERE puballtables)
        OR EXISTS (SELECT FROM pg_publication_namespace WHERE pnnspid = 'outbox'::regnamespace) THEN
        RETURN 'none';
    END IF;
    FOR part IN
        SELECT t.key, missing.leaf << t.shift AS low, 'outbox.' || t.parent || '_default' AS stored
        FROM outbox.leaf_tables() t JOIN outbox.missing_leaf missing ON missing.table_name = t.parent
        WHERE missing.leaf IS NOT NULL
    LOOP
        EXECUTE format('SELECT count(*) > 1000 FROM (SELECT FROM %s WHERE %I >= %s LIMIT 1001) few',
                       part.stored, part.key, part.low) INTO many;
        IF many OR pg_table_size(part.stored::regclass) > 32 << 20 THEN
            RETURN 'stage';
        END IF;
    END LOOP;
    RETURN 'none';
END $$;
-- Waits at most 50 ms for a vacuum of each default leaf, while nobody waits for this, and lets none begin. So the
-- stronger lock that follows waits for none.
CREATE FUNCTION outbox.keep_vacuum_away() RETURNS void LANGUAGE sql VOLATILE AS $$
    LOCK TABLE outbox.half_message_default, outbox.op_message_default, outbox.commit_log_default,
        outbox.publication_log_default, outbox.check_attempt_default IN SHARE UPDATE EXCLUSIVE MODE
$$;
-- Creates one leaf of the copy, and first the copy itself. Locks no table that a program uses.
CREATE FUNCTION outbox.stage_leaf(leaf bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    part record;
    copy text;
    name text;
BEGIN
    FOR part IN SELECT *, leaf << shift AS low, (leaf + 1) << shift AS high FROM outbox.leaf_tables() LOOP
        copy := part.parent || '_next';
        IF to_regclass('outbox.' || copy) IS NULL THEN
            EXECUTE format('CREATE TABLE outbox.%I (LIKE outbox.%I INCLUDING ALL) PARTITION BY RANGE (%I)',
                           copy, part.parent, part.key);
            EXECUTE format('CREATE TABLE outbox.%I PARTITION OF outbox.%I DEFAULT', copy || '_default', copy);
        END IF;
        name := format('%s_%s', copy, leaf);
        -- The constraint spares the reading of the leaf when it is attached.
        EXECUTE format('CREATE TABLE outbox.%I (LIKE outbox.%I INCLUDING ALL, CONSTRAINT ck_leaf CHECK (%I >= %s AND %I < %s))%s',
                       name, part.parent, part.key, part.low, part.key, part.high,
                       CASE WHEN part.parent IN ('half_message', 'op_message', 'commit_log')
                            THEN ' WITH (fillfactor = 100, autovacuum_enabled = off)' ELSE '' END);
        EXECUTE format('ALTER TABLE outbox.%I ATTACH PARTITION outbox.%I FOR VALUES FROM (%s) TO (%s)',
                       copy, name, part.low, part.high);
    END LOOP;
END $$;
-- Writes to the copy what was written to a default leaf. Nothing but retention deletes there, and nothing updates; both
-- wait for a part of the copy that is being made, which could bring a deleted row back.
CREATE FUNCTION outbox.mirror_row() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        LOCK TABLE outbox.leaf_move IN ROW SHARE MODE;
        EXECUTE format('DELETE FROM outbox.%I WHERE (%s) = ($1.%s)',
                       TG_ARGV[0] || '_next', TG_ARGV[1], replace(TG_ARGV[1], ', ', ', $1.')) USING OLD;
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN NULL;
    END IF;
    CASE TG_ARGV[0]
        WHEN 'half_message' THEN INSERT INTO outbox.half_message_next SELECT NEW.*;
        WHEN 'op_message' THEN INSERT INTO outbox.op_message_next SELECT NEW.*;
        WHEN 'commit_log' THEN INSERT INTO outbox.commit_log_next SELECT NEW.*;
        WHEN 'publication_log' THEN INSERT INTO outbox.publication_log_next SELECT NEW.*;
        WHEN 'check_attempt' THEN INSERT INTO outbox.check_attempt_next SELECT NEW.*;
    END CASE;
    RETURN NULL;
END $$;
-- As before, but the copy follows in sessions, too, whose role or database sets session_replication_role = replica.
CREATE FUNCTION outbox.mirror_defaults() RETURNS void LANGUAGE plpgsql AS $$
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
-- Copies rows of the default leaves, a hundred at a time, until so many milliseconds are over or none is left. Waits for
-- deletions; nobody but a deletion waits for it, and the watermark no longer than that time.
CREATE FUNCTION outbox.copy_defaults(milliseconds integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    part record;
    until CONSTANT timestamptz := clock_timestamp() + milliseconds * interval '1 millisecond';
    is_over boolean := false;
BEGIN
    LOCK TABLE outbox.leaf_move IN EXCLUSIVE MODE;
    FOR part IN SELECT * FROM outbox.leaf_tables() JOIN outbox.leaf_move USING (parent) LOOP
        WHILE part.position IS DISTINCT FROM part.last AND NOT is_over LOOP
            EXECUTE format(
                'WITH few AS MATERIALIZED (SELECT * FROM outbox.%1$I WHERE (%2$s) <= (%3$s)%4$s ORDER BY %2$s LIMIT 100),'
                ' copied AS (INSERT INTO outbox.%5$I SELECT * FROM few ON CONFLICT DO NOTHING)'
                ' SELECT concat_ws('', '', %2$s) FROM few ORDER BY %6$s DESC LIMIT 1',
                part.parent || '_default', part.identity, part.last,
                coalesce(format(' AND (%s) > (', part.identity) || part.position || ')', ''),
                part.parent || '_next', replace(part.identity, ',', ' DESC,')) INTO part.position;
            part.position := coalesce(part.position, part.last);
            is_over := clock_timestamp() >= until;
        END LOOP;
        UPDATE outbox.leaf_move m SET "position" = part.position
        WHERE m.parent = part.parent AND m."position" IS DISTINCT FROM part.position;
    END LOOP;
END $$;
-- Drops what a replacement has left behind; without a replacement, the copy and what lets it follow. Each migration does
-- this as well: the copy would not have what it has changed.
CREATE FUNCTION outbox.end_move() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    part record;
BEGIN
    LOCK TABLE outbox.leaf_move IN SHARE ROW EXCLUSIVE MODE;
    FOR part IN SELECT parent, to_regclass(format('outbox.%I', parent || '_default')) AS stored FROM outbox.leaf_tables() LOOP
        IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = part.stored AND tgname = 'mirror') THEN
            EXECUTE format('DROP TRIGGER mirror ON %s', part.stored);
        END IF;
        EXECUTE format('DROP TABLE IF EXISTS outbox.%I, outbox.%I', part.parent || '_next', part.parent || '_replaced');
    END LOOP;
    DELETE FROM outbox.leaf_move;
END $$;
-- Counts the rows of both in one snapshot, and notes that they are equal: each row of the copy was read from a default
-- leaf or written beside it. If not, somebody else has written to one of them: drops the copy, so that another is begun.
-- Has no xid while it counts.
CREATE FUNCTION outbox.compare_defaults() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    equal boolean;
BEGIN
    EXECUTE (SELECT 'SELECT ' || string_agg(format('(SELECT count(*) FROM outbox.%I) = (SELECT count(*) FROM outbox.%I)',
                                                   parent || '_default', parent || '_next'), ' AND ')
             FROM outbox.leaf_tables()) INTO equal;
    IF equal THEN
        UPDATE outbox.leaf_move SET compared = true;
    ELSE
        PERFORM outbox.end_move();
    END IF;
END $$;
-- Puts the copy in the place of the default leaves, by the catalogue alone: reads nothing but what stays in the new
-- default leaf. Does not wait for an audit, which would look for the rows where they were: raises lock_not_available.
CREATE FUNCTION outbox.replace_defaults() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    part record;
    leaf record;
    held record;
BEGIN
    IF NOT outbox.no_audit() THEN
        RAISE lock_not_available USING MESSAGE = 'an audit may still read the rows that have no leaf';
    END IF;
    PERFORM outbox.keep_vacuum_away();
    LOCK TABLE outbox.half_message_next, outbox.op_message_next, outbox.commit_log_next, outbox.publication_log_next,
        outbox.check_attempt_next IN SHARE UPDATE EXCLUSIVE MODE;
    PERFORM outbox.lock_leaves();
    LOCK TABLE outbox.half_message_default, outbox.op_message_default, outbox.commit_log_default,
        outbox.publication_log_default, outbox.check_attempt_default IN ACCESS EXCLUSIVE MODE;
    FOR part IN
        SELECT *, parent || '_default' AS stored, parent || '_next' AS copy, parent || '_next_default' AS next_default
        FROM outbox.leaf_tables()
    LOOP
        EXECUTE format('ALTER TABLE outbox.%I DETACH PARTITION outbox.%I', part.parent, part.stored);
        EXECUTE format('ALTER TABLE outbox.%I RENAME TO %I', part.stored, part.parent || '_replaced');
        FOR leaf IN
            SELECT c.relname AS name, substring(c.relname FROM '\d+$')::bigint AS number
            FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = to_regclass('outbox.' || part.copy) AND c.relname ~ '_\d+$'
        LOOP
            EXECUTE format('ALTER TABLE outbox.%I DETACH PARTITION outbox.%I', part.copy, leaf.name);
            EXECUTE format('ALTER TABLE outbox.%I RENAME TO %I', leaf.name, format('%s_%s', part.parent, leaf.number));
            EXECUTE format('ALTER TABLE outbox.%I ATTACH PARTITION outbox.%I FOR VALUES FROM (%s) TO (%s)',
                           part.parent, format('%s_%s', part.parent, leaf.number),
                           leaf.number << part.shift, (leaf.number + 1) << part.shift);
        END LOOP;
        EXECUTE format('ALTER TABLE outbox.%I DETACH PARTITION outbox.%I', part.copy, part.next_default);
        EXECUTE format('ALTER TABLE outbox.%I RENAME TO %I', part.next_default, part.stored);
        EXECUTE format('ALTER TABLE outbox.%I ATTACH PARTITION outbox.%I DEFAULT', part.parent, part.stored);
        FOR held IN
            SELECT granted.privilege_type AS privilege,
                CASE granted.grantee WHEN 0 THEN 'PUBLIC' ELSE granted.grantee::regrole::text END AS role
            FROM pg_class c, aclexplode(c.relacl) AS granted
            WHERE c.oid = to_regclass(format('outbox.%I', part.parent || '_replaced')) AND granted.grantee <> c.relowner
        LOOP
            EXECUTE format('GRANT %s ON outbox.%I TO %s', held.privilege, part.stored, held.role);
        END LOOP;
    END LOOP;
END $$;
-- Does the next step for default leaves with many rows, and returns it; none: there are few. The caller bounds the wait
-- for a lock: lock_not_available means that nothing was changed, try again.
CREATE FUNCTION outbox.move_defaults(milliseconds integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    step text;
BEGIN
    LOCK TABLE outbox.leaf_move IN SHARE ROW EXCLUSIVE MODE;
    step := outbox.leaf_move_step();
    CASE step
        WHEN 'none' THEN NULL;
        WHEN 'stage' THEN PERFORM outbox.stage_leaf(
            CASE WHEN EXISTS (SELECT FROM outbox.leaf_move) THEN outbox.leaf_to_come()
                 ELSE (SELECT min(leaf) FROM outbox.leaves_to_stage() AS leaf) END);
        WHEN 'mirror' THEN PERFORM outbox.mirror_defaults();
        WHEN 'copy' THEN PERFORM outbox.copy_defaults(milliseconds);
        WHEN 'compare' THEN PERFORM outbox.compare_defaults();
        WHEN 'replace' THEN PERFORM outbox.replace_defaults();
        WHEN 'end' THEN PERFORM outbox.end_move();
    END CASE;
    RETURN step;
END $$;
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
-- Each time that PostgreSQL's clock was found to have stepped: by how much, and its time just after that. A clock that
-- nobody has looked at for a while may have stepped, too: such a pause counts as a step. The ids are the order.
CREATE TABLE outbox.clock_step (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_clock_step PRIMARY KEY,
    noticed_at timestamptz NOT NULL,
    seconds double precision NOT NULL
);
-- Notes the clock's time in the row 'clock' of outbox.progress, and a step since the last time that was noted.
CREATE FUNCTION outbox.note_clock() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    before timestamptz;
    present timestamptz;
BEGIN
    INSERT INTO outbox.progress (name) VALUES ('clock') ON CONFLICT DO NOTHING;
    SELECT updated_at INTO before FROM outbox.progress WHERE name = 'clock' FOR UPDATE;
    present := clock_timestamp();
    IF present < before OR present > before + interval '2 minutes' THEN
        INSERT INTO outbox.clock_step (noticed_at, seconds) VALUES (present, extract(epoch FROM present - before));
    END IF;
    UPDATE outbox.progress SET updated_at = present WHERE name = 'clock';
END $$;
-- Returns how much the clock may have skipped (s) since what is not yet so many seconds old in truth: whatever is older by
-- the clock than these seconds and the skipped ones is so old. And when the clock was last found to have stepped: what is
-- of a later time than the present was written before that. NULL: never. A step that nobody has noted yet counts.
CREATE FUNCTION outbox.clock_doubt(
    age_seconds double precision, OUT skipped_seconds double precision, OUT stepped_at timestamptz
) LANGUAGE sql VOLATILE AS $$
    WITH present AS MATERIALIZED (SELECT clock_timestamp() AS at), steps AS (
        SELECT id, noticed_at, seconds FROM outbox.clock_step
        UNION ALL
        SELECT 9223372036854775807, present.at, extract(epoch FROM present.at - p.updated_at)::float8
        FROM outbox.progress p, present
        WHERE p.name = 'clock' AND (present.at < p.updated_at OR present.at > p.updated_at + interval '2 minutes')
    ), summed AS (
        SELECT id, noticed_at, seconds, sum(seconds) OVER (ORDER BY id DESC) AS since FROM steps
    )
    SELECT coalesce(greatest(0, max(since) FILTER (
            WHERE extract(epoch FROM present.at - noticed_at) - (since - seconds) < age_seconds)), 0),
        (array_agg(noticed_at ORDER BY id DESC))[1]
    FROM summed, present
$$;
-- Returns whether something was later than a time. What is of a later time than the present is from before the clock was
-- set back: it was later only if the clock has stepped since.
CREATE FUNCTION outbox.is_since(at timestamptz, since timestamptz, stepped boolean) RETURNS boolean
LANGUAGE sql VOLATILE AS $$
    SELECT at > since AND (stepped OR at <= clock_timestamp() + interval '2 minutes')
$$;
SELECT outbox.create_leaves(2);
