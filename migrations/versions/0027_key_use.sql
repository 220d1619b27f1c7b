-- A long reader must not let this wait, and all others behind it: run it again then.
SET LOCAL lock_timeout = '10s';

-- used_at: when a request with this key was last accepted; refused_at: when one was last refused, because the key is
-- revoked or expired. Both are written at most once a minute.
ALTER TABLE outbox.api_key ADD COLUMN used_at timestamptz, ADD COLUMN refused_at timestamptz;
