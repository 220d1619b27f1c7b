CREATE TABLE IF NOT EXISTS outbox_barrier (
  producer_group text NOT NULL,
  message_id     text NOT NULL,
  outcome        text NOT NULL CHECK (outcome IN ('committed', 'fenced')),
  created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (producer_group, message_id)
)
