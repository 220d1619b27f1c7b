-- An audit that is running must not let this wait for ever: run it again then.
SET LOCAL lock_timeout = '10s';

-- Without an identity PostgreSQL refuses every DELETE while the table is published, so every audit would fail. It costs
-- nothing otherwise.
ALTER TABLE outbox.reconciliation_carry REPLICA IDENTITY FULL;
