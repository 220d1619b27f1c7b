-- A long reader must not let this wait for ever: run it again then.
SET LOCAL lock_timeout = '10s';

-- What the relay's principal last saw of a topic in Kafka; NULL: it could not see it. The most bytes of key, value and
-- headers that a record can have; whether it may write.
ALTER TABLE outbox.topic ADD COLUMN partitions integer, ADD COLUMN max_content_bytes integer, ADD COLUMN may_write boolean;

-- Held records that are neither released nor dropped. A repair is a lane of its own. The scope is the key, by its hash
-- because an index entry is short; a record without a key is a scope of its own.
CREATE VIEW outbox.open_held AS
SELECT half_id, nonce, shard, coalesce(repair, '') AS lane, topic_id, coalesce(sha256(key), int8send(half_id)) AS scope,
    xid, n, topic_wide, attempts, next_attempt_at, repair, key, payload
FROM outbox.held_record
WHERE released_at IS NULL AND dropped_at IS NULL;

-- Finds the first open record of a scope, and the scopes one by one.
CREATE INDEX ix_held_record_scope ON outbox.held_record
    (shard, (coalesce(repair, '')), topic_id, (coalesce(sha256(key), int8send(half_id))), xid, n)
    WHERE released_at IS NULL AND dropped_at IS NULL;
-- Finds the first open record of a topic.
CREATE INDEX ix_held_record_topic ON outbox.held_record (shard, (coalesce(repair, '')), topic_id, xid, n)
    WHERE released_at IS NULL AND dropped_at IS NULL;
-- Finds the topics that are held as a whole.
CREATE INDEX ix_held_record_wide ON outbox.held_record (shard, (coalesce(repair, '')), topic_id)
    WHERE released_at IS NULL AND dropped_at IS NULL AND topic_wide;
-- Finds the refused records and the repairs that are due. Those that only wait are not in it.
CREATE INDEX ix_held_record_due ON outbox.held_record (shard, next_attempt_at)
    WHERE released_at IS NULL AND dropped_at IS NULL AND (attempts > 0 OR repair IS NOT NULL);
