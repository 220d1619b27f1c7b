-- Messages: what a prepare stores, what an END decides, and the commit log that the relay reads.

-- One row: who this installation is, and what is added to xids so that ids go on after a restore
-- into a cluster whose xids start lower. plain_outbox: whether SQL mode is on. shards: how many shards new messages use,
-- a power of two, because the sixteen values of the hash are folded onto them. Two values at a time would break the order
-- of a key. So an installation keeps the number that it began with.
CREATE TABLE outbox.installation (
    one boolean CONSTRAINT pk_installation PRIMARY KEY DEFAULT true CONSTRAINT ck_installation_one CHECK (one),
    installation_id uuid NOT NULL DEFAULT gen_random_uuid(),
    base bigint NOT NULL DEFAULT 0 CONSTRAINT ck_installation_base CHECK (base >= 0),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    plain_outbox boolean NOT NULL DEFAULT false,
    shards smallint NOT NULL DEFAULT 16 CONSTRAINT ck_installation_shards CHECK (shards IN (1, 2, 4, 8, 16))
);
INSERT INTO outbox.installation (shards) VALUES (2);

-- The based id of this transaction; taking it is what orders a flush.
CREATE FUNCTION outbox.current_xid() RETURNS bigint LANGUAGE sql VOLATILE
RETURN pg_current_xact_id()::text::bigint + (SELECT base FROM outbox.installation);

-- Names are interned: a hot row carries four bytes for a topic and four for a producer group. partitions,
-- max_message_bytes, may_write and compacted are what the relay's principal last saw of the topic in Kafka; NULL: it
-- could not see it. max_message_bytes: the most bytes of a batch.
CREATE TABLE outbox.topic (
    id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_topic PRIMARY KEY,
    name text NOT NULL CONSTRAINT uq_topic_name UNIQUE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    partitions integer,
    max_message_bytes integer,
    may_write boolean,
    compacted boolean
);

-- One row a half message, written once by COPY, never updated. half_id = (xid8 + base) << 15 | n << 4 | shard.
-- followers: the other messages under its decision, of the same flush, in shards of their own. They have it as leader_id.
CREATE TABLE outbox.half_message (
    half_id bigint NOT NULL,
    nonce bigint NOT NULL,
    prepared_at timestamptz NOT NULL,
    content_digest bigint NOT NULL,
    producer_group_id integer NOT NULL,
    topic_id integer NOT NULL,
    "partition" integer CONSTRAINT ck_half_message_partition CHECK ("partition" >= 0),
    check_immunity_seconds integer CONSTRAINT ck_half_message_immunity CHECK (check_immunity_seconds BETWEEN 1 AND 3600),
    transaction_id text,
    key bytea,
    value bytea,
    headers bytea[],
    content_type text,
    traceparent text,
    tags text[],
    key_id text,
    followers bigint[] CONSTRAINT ck_half_message_followers CHECK (cardinality(followers) BETWEEN 1 AND 99),
    leader_id bigint,
    CONSTRAINT pk_half_message PRIMARY KEY (half_id)
) PARTITION BY RANGE (half_id);

-- One row a decision. Its primary key is the rule "the first decision wins for ever" (G2).
CREATE TABLE outbox.op_message (
    half_id bigint NOT NULL,
    xid bigint NOT NULL,
    decided_at timestamptz NOT NULL,
    decision smallint NOT NULL CONSTRAINT ck_op_message_decision CHECK (decision IN (1, 2)),
    decided_by smallint NOT NULL CONSTRAINT ck_op_message_decided_by CHECK (decided_by BETWEEN 1 AND 5),
    reason text,
    actor text,
    CONSTRAINT pk_op_message PRIMARY KEY (half_id),
    CONSTRAINT ck_op_message_policy_only_rolls_back CHECK (decided_by <> 4 OR decision = 2),
    CONSTRAINT ck_op_message_recovery_only_commits CHECK (decided_by <> 5 OR decision = 1)
) PARTITION BY RANGE (half_id);

-- One row a flush and shard: the committed ids in decision order, and their digests in the same order. awaited: a caller
-- waits until Kafka has one of these messages: the relay saves its progress soon after it has published them.
CREATE TABLE outbox.commit_log (
    shard smallint NOT NULL CONSTRAINT ck_commit_log_shard CHECK (shard BETWEEN 0 AND 15),
    xid bigint NOT NULL,
    committed_at timestamptz NOT NULL,
    half_ids bigint[] NOT NULL,
    content_digests bigint[] NOT NULL,
    awaited boolean NOT NULL DEFAULT false,
    CONSTRAINT pk_commit_log PRIMARY KEY (shard, xid),
    CONSTRAINT ck_commit_log_not_empty CHECK (cardinality(half_ids) > 0),
    CONSTRAINT ck_commit_log_same_length CHECK (cardinality(half_ids) = cardinality(content_digests))
) PARTITION BY RANGE (xid);

-- transaction_id -> half, unique per group while retained; written only where a producer gives one.
CREATE TABLE outbox.transaction_key (
    producer_group_id integer NOT NULL,
    transaction_id text NOT NULL,
    half_id bigint NOT NULL,
    CONSTRAINT pk_transaction_key PRIMARY KEY (producer_group_id, transaction_id)
);

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
