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
