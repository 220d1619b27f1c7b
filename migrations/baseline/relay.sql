-- The relay: how far each shard is published, where Kafka put what, and what Kafka refuses.

-- Cursors and heartbeats: 'sweep', 'relay:<shard>', 'reconcile:<shard>', 'heartbeat:<task>'.
CREATE TABLE outbox.progress (
    name text CONSTRAINT pk_progress PRIMARY KEY,
    position bigint NOT NULL DEFAULT 0,
    position_n integer NOT NULL DEFAULT 0,
    manifest_offset bigint,
    batch_no bigint,
    crc bigint,
    gen bigint,
    cluster_id text,
    topic_id text,
    pg_system_id text,
    halt_reason text,
    owner text,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 10);

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

-- One row a relay batch, for people: where Kafka put what. Positions are (xid, n); never needed for correctness.
CREATE TABLE outbox.publication_log (
    shard smallint NOT NULL CONSTRAINT ck_publication_log_shard CHECK (shard BETWEEN 0 AND 15),
    to_xid bigint NOT NULL,
    to_n integer NOT NULL,
    batch_no bigint NOT NULL,
    from_xid bigint NOT NULL,
    from_n integer NOT NULL,
    published_at timestamptz NOT NULL,
    half_ids bigint[] NOT NULL,
    partitions integer[] NOT NULL,
    offsets bigint[] NOT NULL,
    CONSTRAINT pk_publication_log PRIMARY KEY (shard, to_xid, to_n, batch_no),
    CONSTRAINT ck_publication_log_same_length CHECK (
        cardinality(half_ids) = cardinality(partitions) AND cardinality(half_ids) = cardinality(offsets))
) PARTITION BY RANGE (to_xid);

-- Ids that Kafka has and this PostgreSQL did not know in their place; filled by the relay's recovery alone.
CREATE TABLE outbox.already_published (
    half_id bigint NOT NULL,
    nonce bigint NOT NULL,
    shard smallint NOT NULL,
    manifest_offset bigint NOT NULL,
    producer_group text,
    transaction_id text,
    found_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT pk_already_published PRIMARY KEY (half_id, nonce)
);

-- Committed messages that Kafka refuses, and those waiting behind them in their scope.
CREATE TABLE outbox.held_record (
    half_id bigint CONSTRAINT pk_held_record PRIMARY KEY,
    nonce bigint NOT NULL,
    shard smallint NOT NULL,
    topic_id integer NOT NULL,
    key bytea,
    topic_wide boolean NOT NULL DEFAULT false,
    xid bigint NOT NULL,
    n integer NOT NULL,
    held_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    publish_error text NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    repair text,
    released_at timestamptz,
    release_batch_no bigint,
    released_partition integer,
    released_offset bigint,
    dropped_at timestamptz,
    drop_reason text
);
CREATE INDEX ix_held_record_open ON outbox.held_record (shard, xid, n) WHERE released_at IS NULL AND dropped_at IS NULL;
-- Finds the open held records in the order of their messages, for a list.
CREATE INDEX ix_held_record_half ON outbox.held_record (half_id) WHERE released_at IS NULL AND dropped_at IS NULL;
-- The same for those that Kafka has refused themselves, which are few among those that wait behind them.
CREATE INDEX ix_held_record_refused ON outbox.held_record (half_id)
    WHERE released_at IS NULL AND dropped_at IS NULL AND attempts > 0;

-- Committed halves that the relay of their shard has not passed yet. Each shard's position bounds its range of the commit
-- log's key; no older row is read.
CREATE VIEW outbox.unpassed_commit AS
SELECT ids.half_id
FROM generate_series(0, 15) AS s (shard)
LEFT JOIN outbox.progress p ON p.name = 'relay:' || s.shard
CROSS JOIN LATERAL (
    SELECT xid, half_ids FROM outbox.commit_log WHERE shard = s.shard AND xid >= coalesce(p.position, 0) OFFSET 0
) flush
CROSS JOIN LATERAL unnest(flush.half_ids) WITH ORDINALITY AS ids (half_id, n)
WHERE (flush.xid, ids.n) > (coalesce(p.position, 0), coalesce(p.position_n, 0));

-- Held records that are neither released nor dropped. redriven: the action of a repair, '' of others; a repair waits for no
-- other record. The scope is the key, by its hash
-- because an index entry is short; a record without a key is a scope of its own.
CREATE VIEW outbox.open_held AS
SELECT half_id, nonce, shard, coalesce(repair, '') AS redriven, topic_id, coalesce(sha256(key), int8send(half_id)) AS scope,
    xid, n, topic_wide, attempts, next_attempt_at, repair
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
