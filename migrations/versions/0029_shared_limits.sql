-- A long reader must not let this wait, and all others behind it: run it again then.
SET LOCAL lock_timeout = '10s';

-- The key of some groups from which a key descends, through whatever keys between: they share its rates. NULL: none.
ALTER TABLE outbox.api_key ADD COLUMN root_key_id text;

-- A role that writes no progress, such as that of the API, deletes only since when all checks of a group have failed.
CREATE FUNCTION outbox.keep_progress() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF has_table_privilege('outbox.progress', 'INSERT') THEN
        RETURN OLD;
    END IF;
    RAISE insufficient_privilege USING MESSAGE = format('permission denied to delete %L from outbox.progress', OLD.name);
END $$;
CREATE TRIGGER keep_progress BEFORE DELETE ON outbox.progress
    FOR EACH ROW WHEN (NOT starts_with(OLD.name, 'failing:')) EXECUTE FUNCTION outbox.keep_progress();
