-- name: audit
-- Appends who intervened, and why.
INSERT INTO outbox.audit_log (action, target, half_id, key_id, operator, reason, detail)
VALUES (%(action)s, %(target)s, %(half_id)s, %(key_id)s, %(operator)s, %(reason)s, %(detail)s)
