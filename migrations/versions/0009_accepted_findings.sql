-- A finding may be accepted until a moment, by an action that is finished when it is stored.
ALTER TABLE outbox.reconciliation_finding ADD COLUMN accepted_until timestamptz;
ALTER TABLE outbox.bulk_action DROP CONSTRAINT ck_bulk_action_action;
ALTER TABLE outbox.bulk_action ADD CONSTRAINT ck_bulk_action_action CHECK (action IN (
    'recheck', 'force_end', 'release_held', 'drop_held', 'republish', 'accept_finding'));

-- How many messages a second an action hands to the relay at most; without it all at once.
ALTER TABLE outbox.bulk_action ADD COLUMN rate integer CONSTRAINT ck_bulk_action_rate CHECK (rate >= 1);
