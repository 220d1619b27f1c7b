-- A long reader of the queue must not let this wait for ever: run it again then.
SET LOCAL lock_timeout = '10s';
LOCK TABLE outbox.check_queue IN ACCESS EXCLUSIVE MODE;

-- Keeps the rows that a cursor has not passed. They are few; the passed ones may be hundreds of millions.
CREATE TEMPORARY TABLE open_checks ON COMMIT DROP AS
SELECT q.*
FROM outbox.check_class c
CROSS JOIN LATERAL (
    SELECT * FROM outbox.check_queue
    WHERE producer_group_id = c.producer_group_id AND delay_seconds = c.delay_seconds AND id > c.position
    ORDER BY id
) q;
TRUNCATE outbox.check_queue;
INSERT INTO outbox.check_queue SELECT * FROM open_checks;

-- Finds the rows that have reached a group's max age, and the row of one half.
CREATE INDEX ix_check_queue_age ON outbox.check_queue (producer_group_id, age_from, half_id);

-- Each parking before the last one: when, why, after how many checks.
ALTER TABLE outbox.parked_message ADD COLUMN earlier_parkings jsonb NOT NULL DEFAULT '[]';

-- Begins a flush of prepares: returns its xid, the time, and which of its groups are deleted. Holds a shared lock for
-- each group (by its last six bits) until the transaction ends; a deletion takes it exclusively. So a deletion sees
-- every half that was stored before it, and no flush stores one after it. It is waited for before there is an xid.
CREATE FUNCTION outbox.begin_flush(
    groups integer[], OUT xid bigint, OUT at timestamptz, OUT deleted integer[]
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtext('outbox.begin_flush'), bucket)
    FROM (SELECT DISTINCT g & 63 AS bucket FROM unnest(groups) AS g ORDER BY 1) AS buckets;
    SELECT coalesce(array_agg(id), '{}') INTO deleted
    FROM outbox.producer_group WHERE id = ANY (groups) AND deleted_at IS NOT NULL;
    xid := outbox.current_xid();
    at := clock_timestamp();
END $$;
