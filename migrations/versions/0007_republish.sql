-- Lost messages may be published again: one more action on many messages.
ALTER TABLE outbox.bulk_action DROP CONSTRAINT ck_bulk_action_action;
ALTER TABLE outbox.bulk_action ADD CONSTRAINT ck_bulk_action_action CHECK (action IN (
    'recheck', 'force_end', 'release_held', 'drop_held', 'republish'));
