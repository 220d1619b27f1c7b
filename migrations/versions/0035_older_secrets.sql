-- Every prepare reads this table, so it must not wait long behind a reader that keeps it: run it again then.
SET LOCAL lock_timeout = '2s';

-- The secrets that earlier rotations replaced, the newest first, and until when each signs. The last one that was
-- replaced stays in previous_secret.
ALTER TABLE outbox.producer_group
    ADD COLUMN older_secrets bytea[] NOT NULL DEFAULT '{}',
    ADD COLUMN older_expire_at timestamptz[] NOT NULL DEFAULT '{}';
