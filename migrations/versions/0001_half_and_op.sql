-- One row: who this installation is, and what is added to xids so that ids go on after a restore
-- into a cluster whose xids start lower.
CREATE TABLE outbox.installation (
    one boolean CONSTRAINT pk_installation PRIMARY KEY DEFAULT true CONSTRAINT ck_installation_one CHECK (one),
    installation_id uuid NOT NULL DEFAULT gen_random_uuid(),
    base bigint NOT NULL DEFAULT 0 CONSTRAINT ck_installation_base CHECK (base >= 0),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO outbox.installation DEFAULT VALUES;

-- The based id of this transaction; taking it is what orders a flush (O5).
CREATE FUNCTION outbox.current_xid() RETURNS bigint LANGUAGE sql VOLATILE
RETURN pg_current_xact_id()::text::bigint + (SELECT base FROM outbox.installation);

-- The watermark: every based xid below it has ended, so rows below it are final. STABLE, hence read
-- in the same snapshot as the statement that compares with it.
CREATE FUNCTION outbox.watermark() RETURNS bigint LANGUAGE sql STABLE
RETURN pg_snapshot_xmin(pg_current_snapshot())::text::bigint + (SELECT base FROM outbox.installation);

-- Names are interned: a hot row carries four bytes for a topic and four for a producer group.
CREATE TABLE outbox.topic (
    id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_topic PRIMARY KEY,
    name text NOT NULL CONSTRAINT uq_topic_name UNIQUE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE outbox.producer_group (
    id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_producer_group PRIMARY KEY,
    name text NOT NULL CONSTRAINT uq_producer_group_name UNIQUE,
    check_url text NOT NULL,
    check_interval_seconds integer NOT NULL,
    check_max integer NOT NULL,
    check_timeout_seconds integer NOT NULL,
    transaction_timeout_seconds integer NOT NULL,
    on_check_max text NOT NULL CONSTRAINT ck_producer_group_on_check_max CHECK (on_check_max IN ('park', 'rollback')),
    backoff text NOT NULL CONSTRAINT ck_producer_group_backoff CHECK (backoff IN ('fixed', 'exponential')),
    max_inflight integer NOT NULL,
    batch_check boolean NOT NULL,
    check_payload boolean NOT NULL,
    topics text[] NOT NULL,
    max_age_seconds integer NOT NULL,
    paused boolean NOT NULL DEFAULT false,
    pause_reason text,
    secret bytea NOT NULL,
    previous_secret bytea,
    previous_expires_at timestamptz,
    version integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    deleted_at timestamptz
);

-- One row a half message, written once by COPY, never updated. half_id = (xid8 + base) << 15 | n << 4 | shard.
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
    headers text[],
    content_type text,
    traceparent text,
    tags text[],
    key_id text,
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

-- One row a flush and shard: the committed ids in decision order, and their digests in the same order.
CREATE TABLE outbox.commit_log (
    shard smallint NOT NULL CONSTRAINT ck_commit_log_shard CHECK (shard BETWEEN 0 AND 15),
    xid bigint NOT NULL,
    committed_at timestamptz NOT NULL,
    half_ids bigint[] NOT NULL,
    content_digests bigint[] NOT NULL,
    CONSTRAINT pk_commit_log PRIMARY KEY (shard, xid),
    CONSTRAINT ck_commit_log_not_empty CHECK (cardinality(half_ids) > 0),
    CONSTRAINT ck_commit_log_same_length CHECK (cardinality(half_ids) = cardinality(content_digests))
) PARTITION BY RANGE (xid);

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

-- Each look of the checker that asked, or was refused by the callback guard. It lives and leaves with its half's leaf.
CREATE TABLE outbox.check_attempt (
    half_id bigint NOT NULL,
    look_id bigint NOT NULL,
    round integer NOT NULL,
    attempt integer NOT NULL,
    asked_at timestamptz NOT NULL,
    outcome text NOT NULL CONSTRAINT ck_check_attempt_outcome CHECK (outcome IN (
        'commit', 'rollback', 'unknown', 'bad_verdict', 'http_error', 'timeout', 'unreachable', 'blocked')),
    http_status integer,
    latency_ms integer NOT NULL,
    counted boolean NOT NULL,
    applied boolean NOT NULL,
    error text,
    CONSTRAINT pk_check_attempt PRIMARY KEY (half_id, look_id)
) PARTITION BY RANGE (half_id);

-- transaction_id -> half, unique per group while retained; written only where a producer gives one.
CREATE TABLE outbox.transaction_key (
    producer_group_id integer NOT NULL,
    transaction_id text NOT NULL,
    half_id bigint NOT NULL,
    CONSTRAINT pk_transaction_key PRIMARY KEY (producer_group_id, transaction_id)
);

-- Put back: a reference to an undecided half, FIFO within (group, delay). id = (xid8 + base) << 15 | n, so the
-- watermark test holds here as well. round rises with each recheck.
CREATE TABLE outbox.check_queue (
    producer_group_id integer NOT NULL,
    delay_seconds integer NOT NULL CONSTRAINT ck_check_queue_delay CHECK (delay_seconds >= 0),
    id bigint NOT NULL,
    half_id bigint NOT NULL,
    round integer NOT NULL DEFAULT 1,
    check_count integer NOT NULL DEFAULT 0,
    only_unknown boolean NOT NULL DEFAULT true,
    age_from timestamptz NOT NULL,
    due_at timestamptz NOT NULL,
    CONSTRAINT pk_check_queue PRIMARY KEY (producer_group_id, delay_seconds, id)
);

-- A delay class of a group and how far it has been read; moved by compare-and-set with the effects it passes.
CREATE TABLE outbox.check_class (
    producer_group_id integer NOT NULL,
    delay_seconds integer NOT NULL,
    position bigint NOT NULL DEFAULT 0,
    CONSTRAINT pk_check_class PRIMARY KEY (producer_group_id, delay_seconds)
) WITH (fillfactor = 10);

-- The standing round of a half that was rechecked; rows of older rounds in check_queue are void.
CREATE TABLE outbox.recheck (
    half_id bigint CONSTRAINT pk_recheck PRIMARY KEY,
    round integer NOT NULL,
    rechecked_at timestamptz NOT NULL
);

-- Undecided halves that are no longer checked, payload included, so that they outlive their leaf.
CREATE TABLE outbox.parked_message (
    half_id bigint CONSTRAINT pk_parked_message PRIMARY KEY,
    nonce bigint NOT NULL,
    prepared_at timestamptz NOT NULL,
    content_digest bigint NOT NULL,
    producer_group_id integer NOT NULL,
    topic_id integer NOT NULL,
    "partition" integer,
    check_immunity_seconds integer,
    transaction_id text,
    key bytea,
    value bytea,
    headers text[],
    content_type text,
    traceparent text,
    tags text[],
    key_id text,
    parked_at timestamptz NOT NULL,
    parked_reason text NOT NULL CONSTRAINT ck_parked_message_reason CHECK (parked_reason IN ('check_max', 'max_age')),
    check_count integer NOT NULL,
    resumed_at timestamptz
);
CREATE INDEX ix_parked_message_standing ON outbox.parked_message (producer_group_id, half_id) WHERE resumed_at IS NULL;

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
    payload jsonb,
    released_at timestamptz,
    release_batch_no bigint,
    released_partition integer,
    released_offset bigint,
    dropped_at timestamptz,
    drop_reason text
);
CREATE INDEX ix_held_record_open ON outbox.held_record (shard, xid, n) WHERE released_at IS NULL AND dropped_at IS NULL;

-- Cursors and heartbeats: 'sweep', 'relay:<shard>', 'reconcile:<shard>', 'heartbeat:<chore>'.
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
    halt_detail text,
    owner text,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 10);

CREATE TABLE outbox.api_key (
    key_id text CONSTRAINT pk_api_key PRIMARY KEY,
    name text NOT NULL,
    secret_hmac bytea NOT NULL,
    producer_groups text[] NOT NULL,
    scopes text[] NOT NULL,
    expires_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    revoked_at timestamptz
);

CREATE TABLE outbox.audit_log (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_audit_log PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    action text NOT NULL,
    target text NOT NULL,
    half_id bigint,
    key_id text,
    operator text,
    reason text,
    detail jsonb
);
CREATE INDEX ix_audit_log_half_id ON outbox.audit_log (half_id) WHERE half_id IS NOT NULL;

-- Creates the leaf that holds based xids [leaf << 20, (leaf + 1) << 20) of all five partitioned tables, if it is missing.
-- A table is made first and attached after, which takes a weaker lock on the parent than CREATE … PARTITION OF.
CREATE FUNCTION outbox.create_leaf(leaf bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    parent text;
    shift integer;
    name text;
    storage text;
BEGIN
    IF to_regclass(format('outbox.half_message_%s', leaf)) IS NOT NULL THEN
        RETURN false;
    END IF;
    FOREACH parent IN ARRAY ARRAY['half_message', 'op_message', 'commit_log', 'publication_log', 'check_attempt'] LOOP
        name := format('%s_%s', parent, leaf);
        shift := CASE WHEN parent IN ('commit_log', 'publication_log') THEN 20 ELSE 35 END;
        storage := CASE WHEN parent IN ('half_message', 'op_message', 'commit_log')
                        THEN ' WITH (fillfactor = 100, autovacuum_enabled = off)' ELSE '' END;
        EXECUTE format('CREATE TABLE outbox.%I (LIKE outbox.%I INCLUDING ALL)%s', name, parent, storage);
        EXECUTE format('ALTER TABLE outbox.%I ATTACH PARTITION outbox.%I FOR VALUES FROM (%s) TO (%s)',
                       parent, name, leaf << shift, (leaf + 1) << shift);
    END LOOP;
    RETURN true;
END $$;

-- Creates the leaf of the current xid and the next ones; returns how many were missing.
CREATE FUNCTION outbox.create_leaves(ahead integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    here bigint := outbox.watermark() >> 20;
    made integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('outbox.create_leaves'));
    FOR leaf IN here .. here + ahead LOOP
        made := made + outbox.create_leaf(leaf)::integer;
    END LOOP;
    RETURN made;
END $$;

-- A row that lands here means that nobody made leaves ahead: nothing is lost, but it alarms.
CREATE TABLE outbox.half_message_default PARTITION OF outbox.half_message DEFAULT;
CREATE TABLE outbox.op_message_default PARTITION OF outbox.op_message DEFAULT;
CREATE TABLE outbox.commit_log_default PARTITION OF outbox.commit_log DEFAULT;
CREATE TABLE outbox.publication_log_default PARTITION OF outbox.publication_log DEFAULT;
CREATE TABLE outbox.check_attempt_default PARTITION OF outbox.check_attempt DEFAULT;

SELECT outbox.create_leaves(2);
