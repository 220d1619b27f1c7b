-- What operators asked to be done to many messages at once, and how far it has come. The ids are those that
-- matched when it was asked; they are taken in order, each chunk in one commit with its effects.
CREATE TABLE outbox.bulk_action (
    id uuid CONSTRAINT pk_bulk_action PRIMARY KEY DEFAULT gen_random_uuid(),
    action text NOT NULL CONSTRAINT ck_bulk_action_action CHECK (action IN (
        'recheck', 'force_end', 'release_held', 'drop_held')),
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
    finished_at timestamptz
);
CREATE INDEX ix_bulk_action_open ON outbox.bulk_action (created_at) WHERE finished_at IS NULL;

-- Which parked messages OUTBOX_PARKED_TOPIC has not got yet.
ALTER TABLE outbox.parked_message ADD COLUMN copied_at timestamptz;
CREATE INDEX ix_parked_message_uncopied ON outbox.parked_message (half_id) WHERE copied_at IS NULL AND resumed_at IS NULL;
