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
-- matched when it was asked; they are taken in order, each chunk in one commit with its effects. rate: how many messages
-- a second it hands to the relay at most; NULL: all at once. starts_at: not before this time; NULL: at once.
-- cancelled_at: when it was cancelled; finished_at has the same time, so that no program goes on with it.
CREATE TABLE outbox.bulk_action (
    id uuid CONSTRAINT pk_bulk_action PRIMARY KEY DEFAULT gen_random_uuid(),
    action text NOT NULL CONSTRAINT ck_bulk_action_action CHECK (action IN (
        'recheck', 'force_end', 'release_held', 'drop_held', 'republish', 'accept_finding')),
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
    rate integer CONSTRAINT ck_bulk_action_rate CHECK (rate >= 1),
    starts_at timestamptz,
    cancelled_at timestamptz
);
CREATE INDEX ix_bulk_action_open ON outbox.bulk_action (created_at) WHERE finished_at IS NULL;
