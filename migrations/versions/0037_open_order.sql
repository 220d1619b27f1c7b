-- A long reader must not let this wait for ever: run it again then. These tables have only what is open.
SET LOCAL lock_timeout = '10s';

-- Finds the newest of the waiting halves, for lists of undecided messages.
CREATE INDEX ix_check_queue_half ON outbox.check_queue (half_id);
-- Finds the next calls in SQL mode, for a batch of an admission.
CREATE INDEX ix_plain_message_place ON outbox.plain_message (place);
-- Finds the open held records in the order of their messages, for a list.
CREATE INDEX ix_held_record_half ON outbox.held_record (half_id) WHERE released_at IS NULL AND dropped_at IS NULL;
-- The same for those that Kafka has refused themselves, which are few among those that wait behind them.
CREATE INDEX ix_held_record_refused ON outbox.held_record (half_id)
    WHERE released_at IS NULL AND dropped_at IS NULL AND attempts > 0;
