-- Every flush writes into this table, so it must not wait long behind a reader that keeps it: run it again then.
SET LOCAL lock_timeout = '2s';

-- A caller waits until Kafka has one of these messages: the relay saves its progress soon after it has published them.
-- Programs of the version before write and read nothing here, and such a caller waits up to a second longer.
ALTER TABLE outbox.commit_log ADD COLUMN awaited boolean NOT NULL DEFAULT false;
