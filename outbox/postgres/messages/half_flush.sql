-- name: prepare_begin_flush
-- Prepares "begin_flush" in this session. It takes its transaction's xid, which orders the flush, and reads the
-- database's time and which of the groups are deleted. Holds a shared advisory lock for each group until the commit;
-- waits, before it has an xid, for a deletion that is under way (outbox.begin_flush).
PREPARE outbox_begin_flush (int4[]) AS
SELECT xid, (extract(epoch FROM at) * 1000000)::int8, array_to_string(deleted, ',') FROM outbox.begin_flush($1)

-- name: prepare_claim
-- Prepares "claim" in this session. It writes one transaction_key row for each new transaction id and returns the half
-- ids that won; a half id is the flush's xid and the low bits that are given. Waits for a concurrent transaction that
-- writes the same id. The ids are sorted, so that two flushes cannot deadlock.
PREPARE outbox_claim (int4[], text[], int8[]) AS
INSERT INTO outbox.transaction_key (producer_group_id, transaction_id, half_id)
SELECT g, t, ((SELECT outbox.current_xid()) << 15) | low
FROM unnest($1, $2, $3) AS asked (g, t, low)
ORDER BY g, t, low
ON CONFLICT DO NOTHING
RETURNING half_id

-- name: shards_in_use
-- Reads how many shards the installation uses, when a session begins: the number changes only while none is open.
SELECT shards FROM outbox.installation
