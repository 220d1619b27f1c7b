-- A long reader must not let this wait for ever: run it again then. Writers of these tables wait while an index
-- is made, a second for a million rows: they have only what is open, and no prepare or END writes to them.
SET LOCAL lock_timeout = '10s';

-- Finds the newest of the waiting halves, for lists of undecided messages.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX ix_check_queue_half ON outbox.check_queue (half_id);
-- Finds the next calls in SQL mode, for a batch of an admission.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX ix_plain_message_place ON outbox.plain_message (place);
-- Finds the open held records in the order of their messages, for a list.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX ix_held_record_half ON outbox.held_record (half_id) WHERE released_at IS NULL AND dropped_at IS NULL;
-- The same for those that Kafka has refused themselves, which are few among those that wait behind them.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX ix_held_record_refused ON outbox.held_record (half_id)
    WHERE released_at IS NULL AND dropped_at IS NULL AND attempts > 0;
