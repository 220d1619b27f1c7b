-- Checks: the producer groups, the queue of their checks, and what came of them.

-- previous_secrets: the secrets that rotations replaced, the newest first, and until when each signs.
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
    paused_at timestamptz,
    paused_by text,
    secret bytea NOT NULL,
    secret_changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    previous_secrets bytea[] NOT NULL DEFAULT '{}',
    previous_expire_at timestamptz[] NOT NULL DEFAULT '{}',
    version integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    deleted_at timestamptz
);

-- A half message with the names of its group and topic.
CREATE VIEW outbox.named_half AS
SELECT h.*, g.name AS producer_group, t.name AS topic
FROM outbox.half_message h
JOIN outbox.producer_group g ON g.id = h.producer_group_id
JOIN outbox.topic t ON t.id = h.topic_id;

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
-- Finds the rows that have reached a group's max age, and the row of one half.
CREATE INDEX ix_check_queue_age ON outbox.check_queue (producer_group_id, age_from, half_id);
-- Finds the newest of the waiting halves, for lists of undecided messages.
CREATE INDEX ix_check_queue_half ON outbox.check_queue (half_id);

-- A delay class of a group and how far it has been read; moved by compare-and-set with the effects it passes.
CREATE TABLE outbox.check_class (
    producer_group_id integer NOT NULL,
    delay_seconds integer NOT NULL,
    position bigint NOT NULL DEFAULT 0,
    CONSTRAINT pk_check_class PRIMARY KEY (producer_group_id, delay_seconds)
) WITH (fillfactor = 10);

-- Endpoints that keep failing: open until probe_at, then one probe (half-open). Closed: no row.
CREATE TABLE outbox.check_breaker (
    producer_group_id int NOT NULL,
    wait_seconds      int NOT NULL CHECK (wait_seconds BETWEEN 1 AND 300),
    probe_at          timestamptz NOT NULL,
    CONSTRAINT pk_check_breaker PRIMARY KEY (producer_group_id)
);

-- The current round of a half that was rechecked; rows of older rounds in check_queue are void.
CREATE TABLE outbox.recheck (
    half_id bigint CONSTRAINT pk_recheck PRIMARY KEY,
    round integer NOT NULL,
    rechecked_at timestamptz NOT NULL
);

-- Undecided halves that are no longer checked. earlier_parkings: each parking before the last one: when, why, after how
-- many checks.
CREATE TABLE outbox.parked_message (
    half_id bigint CONSTRAINT pk_parked_message PRIMARY KEY,
    producer_group_id integer NOT NULL,
    parked_at timestamptz NOT NULL,
    parked_reason text NOT NULL CONSTRAINT ck_parked_message_reason CHECK (parked_reason IN ('check_max', 'max_age')),
    check_count integer NOT NULL,
    resumed_at timestamptz,
    earlier_parkings jsonb NOT NULL DEFAULT '[]'
);
CREATE INDEX ix_parked_message_open ON outbox.parked_message (producer_group_id, half_id) WHERE resumed_at IS NULL;
