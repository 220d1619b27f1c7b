-- name: begin_flush
-- Takes this transaction's xid, which orders the flush (O5), and reads the database's time and which of the groups
-- are deleted. Holds a shared advisory lock for each group until the commit; waits, before it has an xid, for a
-- deletion that is under way, and for a second if strangers alone have the lock (outbox.begin_flush).
SELECT xid, at, deleted FROM outbox.begin_flush(%(groups)s::int4[])
