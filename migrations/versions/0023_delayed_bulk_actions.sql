-- A long reader must not let this wait, and all others behind it: run it again then.
SET LOCAL lock_timeout = '10s';

-- starts_at: not before this time; NULL: at once. cancelled_at: when it was cancelled; finished_at has the same time, so
-- that no program goes on with it.
ALTER TABLE outbox.bulk_action ADD COLUMN starts_at timestamptz, ADD COLUMN cancelled_at timestamptz;
