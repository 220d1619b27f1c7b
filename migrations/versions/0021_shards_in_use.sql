-- Every flush reads this table, so it must not wait long behind a reader that keeps it: run it again then.
SET LOCAL lock_timeout = '2s';

-- A long reader must not let this wait, and all others behind it: run it again then.
SET LOCAL lock_timeout = '10s';

-- How many shards new messages use: a power of two, because the sixteen values of the hash are folded onto them. Two
-- values at a time would break the order of a key. So an installation keeps the number that it began with.
ALTER TABLE outbox.installation ADD COLUMN shards smallint NOT NULL DEFAULT 16
    CONSTRAINT ck_installation_shards CHECK (shards IN (1, 2, 4, 8, 16));

-- Only an installation that this very session has made is new: no program can have used another number yet.
UPDATE outbox.installation SET shards = 2
WHERE created_at > (SELECT backend_start FROM pg_stat_get_activity(pg_backend_pid()))
    AND NOT EXISTS (SELECT FROM outbox.producer_group);

-- As before, with the shard folded onto those in use.
CREATE OR REPLACE FUNCTION outbox.next_half_id(shard bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    first CONSTANT bigint := outbox.current_xid() << 15;
    last bigint;
BEGIN
    SELECT m.half_id INTO last FROM outbox.plain_message m
    WHERE m.half_id BETWEEN first AND first + 32767 ORDER BY m.half_id DESC LIMIT 1;
    IF last >= first + (2047 << 4) THEN
        PERFORM outbox.refuse('a transaction may publish at most 2048 messages', '54000');
    END IF;
    RETURN first + coalesce(((last - first) >> 4) + 1, 0) * 16
        + next_half_id.shard % (SELECT i.shards FROM outbox.installation i);
END $$;
