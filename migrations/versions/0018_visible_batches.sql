-- Relays from here on write manifests that older relays do not read: an older one would halt its shard. Whoever relays
-- holds the lock of a shard, so no lock means no relay. The number is the first key of the relays' locks. Every role may
-- take such a lock: only one that may write the commit log can be a relay's.
DO $$
DECLARE
    held integer;
BEGIN
    SELECT count(*) INTO held FROM pg_locks l CROSS JOIN LATERAL pg_stat_get_activity(l.pid) AS session
    WHERE l.locktype = 'advisory' AND l.classid = 1869968482 AND l.objsubid = 2 AND l.granted
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND has_any_column_privilege(session.usesysid, 'outbox.commit_log', 'INSERT');
    IF held > 0 THEN
        RAISE EXCEPTION 'relays hold % shards: stop every checker, then run `outbox migrate up` again', held;
    END IF;
END $$;

-- The last batch of the shard that consumers are known to see, and the offset of the manifest after it. NULL: not
-- known, and all batches count as visible.
ALTER TABLE outbox.progress ADD COLUMN visible_batch_no bigint, ADD COLUMN visible_offset bigint;
