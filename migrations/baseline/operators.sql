-- Operators: API keys, actions on many messages, and the log of what was done.

-- root_key_id: the key of some groups from which a key descends, through whatever keys between: they share its rates.
-- NULL: none. used_at: when a request with this key was last accepted; refused_at: when one was last refused, because the
-- key is revoked or expired. Both are written at most once a minute.
CREATE TABLE outbox.api_key (
    key_id text CONSTRAINT pk_api_key PRIMARY KEY,
    name text NOT NULL,
    secret_hmac bytea NOT NULL,
    producer_groups text[] NOT NULL,
    scopes text[] NOT NULL,
    expires_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    revoked_at timestamptz,
    used_at timestamptz,
    refused_at timestamptz,
    root_key_id text
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

-- What operators asked to be done to many messages at once, and how far it has come. The ids are those that
-- matched when it was asked; they are taken in order, each chunk in one commit with its effects. starts_at: not before
-- this time. cancelled_at: when it was cancelled; finished_at has the same time, so that no program goes on with it.
CREATE TABLE outbox.bulk_action (
    id uuid CONSTRAINT pk_bulk_action PRIMARY KEY DEFAULT gen_random_uuid(),
    action text NOT NULL CONSTRAINT ck_bulk_action_action CHECK (action IN (
        'recheck', 'force_end', 'release_held', 'drop_held', 'republish')),
    decision text CONSTRAINT ck_bulk_action_decision CHECK (
        (action = 'force_end') = (decision IS NOT NULL) AND decision IN ('COMMIT', 'ROLLBACK')),
    groups integer[],
    operator text NOT NULL,
    reason text NOT NULL,
    key_id text,
    half_ids bigint[] NOT NULL,
    done integer NOT NULL DEFAULT 0,
    failed integer NOT NULL DEFAULT 0,
    failures jsonb NOT NULL DEFAULT '[]',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz,
    starts_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    cancelled_at timestamptz
);
CREATE INDEX ix_bulk_action_open ON outbox.bulk_action (created_at) WHERE finished_at IS NULL;

-- What the programs did in a minute, by group and, for prepares, by API key: each process adds what it did every few seconds. The last two days are kept.
CREATE TABLE outbox.activity (
    minute timestamptz NOT NULL,
    producer_group_id integer NOT NULL,
    key_id text NOT NULL DEFAULT '',
    prepared bigint NOT NULL DEFAULT 0,
    committed bigint NOT NULL DEFAULT 0,
    rolled_back bigint NOT NULL DEFAULT 0,
    published bigint NOT NULL DEFAULT 0,
    parked bigint NOT NULL DEFAULT 0,
    check_commit bigint NOT NULL DEFAULT 0,
    check_rollback bigint NOT NULL DEFAULT 0,
    check_unknown bigint NOT NULL DEFAULT 0,
    check_bad_verdict bigint NOT NULL DEFAULT 0,
    check_http_error bigint NOT NULL DEFAULT 0,
    check_timeout bigint NOT NULL DEFAULT 0,
    check_unreachable bigint NOT NULL DEFAULT 0,
    check_blocked bigint NOT NULL DEFAULT 0,
    CONSTRAINT pk_activity PRIMARY KEY (minute, producer_group_id, key_id)
);
