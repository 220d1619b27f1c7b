-- Runs at the end of every `outbox migrate up`: a dump restores without owners and without privileges into a cluster
-- that does not have our roles. Every right that a migration grants is also here; a test compares both.
REVOKE ALL ON FUNCTION outbox.publish, outbox.allow_publish,
    outbox.note_reconciled(integer, bigint, integer) FROM PUBLIC;

-- The role is the cluster's, the rights are this database's. Without the right to create roles, someone else creates it.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'outbox_reconcile') THEN
        CREATE ROLE outbox_reconcile NOLOGIN;
    END IF;
EXCEPTION
    WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN NULL;
END $$;
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'outbox_reconcile') THEN
        GRANT USAGE ON SCHEMA outbox TO outbox_reconcile;
        GRANT SELECT ON outbox.reconciliation_commits, outbox.reconciliation_halves, outbox.reconciliation_open,
            outbox.topic, outbox.held_record, outbox.already_published, outbox.publication_log, outbox.op_message,
            outbox.progress, outbox.check_class, outbox.check_queue, outbox.check_breaker, outbox.check_attempt,
            outbox.recheck, outbox.retired_leaf TO outbox_reconcile;
        GRANT SELECT, INSERT, UPDATE, DELETE ON outbox.reconciliation_run, outbox.reconciliation_finding,
            outbox.reconciliation_report, outbox.reconciliation_cut, outbox.reconciliation_carry TO outbox_reconcile;
        GRANT SELECT, INSERT, DELETE ON outbox.reconciliation_finding_event TO outbox_reconcile;
        GRANT EXECUTE ON FUNCTION outbox.note_reconciled(integer, bigint, integer) TO outbox_reconcile;
        GRANT SELECT (id, name, check_interval_seconds, check_max, max_age_seconds, transaction_timeout_seconds,
            paused, deleted_at) ON outbox.producer_group TO outbox_reconcile;
        GRANT SELECT (half_id, producer_group_id, parked_at, parked_reason, resumed_at)
            ON outbox.parked_message TO outbox_reconcile;
        GRANT SELECT (base, plain_outbox) ON outbox.installation TO outbox_reconcile;
        GRANT SELECT (half_id, nonce, producer_group_id, topic_id, prepared_at, check_immunity_seconds)
            ON outbox.half_message TO outbox_reconcile;
    END IF;
END $$;

-- Roles that publish in their own transactions. One that this cluster does not have gets its rights by the next run.
DO $$
DECLARE
    publisher text;
BEGIN
    FOR publisher IN SELECT DISTINCT p.role_name FROM outbox.plain_publisher p JOIN pg_roles r ON r.rolname = p.role_name LOOP
        EXECUTE format('GRANT USAGE ON SCHEMA outbox TO %I', publisher);
        EXECUTE format('GRANT EXECUTE ON FUNCTION outbox.publish TO %I', publisher);
    END LOOP;
END $$;
