-- Runs at the end of every `outbox migrate up`: a dump restores without owners and without privileges into a cluster
-- that does not have our roles. What is not granted here, our roles do not have: their rights begin anew each time.
-- A test runs every statement of each program as its role.
--
-- Nothing here is for everybody, what runs as the owner least of all: whoever may name it in a trigger would choose its
-- arguments.
REVOKE ALL ON SCHEMA outbox FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA outbox FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA outbox FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.allow_publish FROM PUBLIC;
DO $$
DECLARE
    as_owner regprocedure;
BEGIN
    FOR as_owner IN SELECT oid FROM pg_proc WHERE pronamespace = 'outbox'::regnamespace AND prosecdef LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', as_owner);
    END LOOP;
END $$;

-- The roles are the cluster's, the rights are this database's. Without the right to create roles, someone else creates
-- them. None can log in: a deployment gives them a password, or makes a user a member.
DO $$
DECLARE
    needed text;
BEGIN
    FOREACH needed IN ARRAY ARRAY['outbox_api', 'outbox_checker', 'outbox_reconcile', 'outbox_publish'] LOOP
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = needed) THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', needed);
            END IF;
        EXCEPTION
            WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN NULL;
        END;
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = needed) THEN
            EXECUTE format('REVOKE ALL ON SCHEMA outbox FROM %I', needed);
            EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA outbox FROM %I', needed);
            EXECUTE format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA outbox FROM %I', needed);
            EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA outbox FROM %I', needed);
            EXECUTE format('GRANT USAGE ON SCHEMA outbox TO %I', needed);
            -- For a database that is closed to others; only its owner may grant this.
            BEGIN
                EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), needed);
            EXCEPTION
                WHEN insufficient_privilege THEN NULL;
            END;
        END IF;
    END LOOP;
END $$;

-- The API stores and decides messages, registers groups and keys, and does what operators ask for.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'outbox_api') THEN
        GRANT SELECT ON outbox.alembic_version, outbox.installation, outbox.topic, outbox.producer_group,
            outbox.half_message, outbox.named_half, outbox.op_message, outbox.commit_log, outbox.publication_log, outbox.check_attempt,
            outbox.transaction_key, outbox.check_queue, outbox.check_class, outbox.check_breaker, outbox.recheck,
            outbox.parked_message, outbox.already_published, outbox.held_record, outbox.open_held, outbox.progress, outbox.plain_message,
            outbox.unpassed_commit, outbox.missing_leaf, outbox.api_key, outbox.audit_log, outbox.bulk_action, outbox.reconciliation_run, outbox.reconciliation_finding,
            outbox.reconciliation_finding_event, outbox.reconciliation_report TO outbox_api;
        GRANT INSERT ON outbox.half_message, outbox.op_message, outbox.commit_log, outbox.audit_log TO outbox_api;
        GRANT INSERT, DELETE ON outbox.transaction_key TO outbox_api;
        GRANT SELECT, INSERT, UPDATE, DELETE ON outbox.activity TO outbox_api;
        GRANT DELETE ON outbox.plain_message, outbox.check_breaker TO outbox_api;
        GRANT INSERT, UPDATE ON outbox.producer_group, outbox.api_key, outbox.bulk_action, outbox.recheck,
            outbox.held_record TO outbox_api;
        GRANT INSERT ON outbox.topic, outbox.check_class, outbox.check_queue, outbox.reconciliation_finding_event
            TO outbox_api;
        GRANT UPDATE (resumed_at) ON outbox.parked_message TO outbox_api;
        GRANT UPDATE (status, accepted_until, updated_at) ON outbox.reconciliation_finding TO outbox_api;
        GRANT DELETE ON outbox.progress TO outbox_api;  -- a trigger leaves it one kind of row
        GRANT EXECUTE ON FUNCTION outbox.begin_admission TO outbox_api;
    END IF;
END $$;

-- The checker sweeps, asks, publishes and retires. It sees no key of the API.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'outbox_checker') THEN
        GRANT SELECT ON outbox.alembic_version, outbox.installation, outbox.topic, outbox.producer_group,
            outbox.half_message, outbox.named_half, outbox.op_message, outbox.commit_log, outbox.publication_log, outbox.transaction_key,
            outbox.check_queue, outbox.check_class, outbox.check_breaker, outbox.recheck, outbox.parked_message,
            outbox.already_published, outbox.held_record, outbox.open_held, outbox.progress,
            outbox.plain_message, outbox.retired_leaf, outbox.missing_leaf, outbox.half_message_default,
            outbox.op_message_default, outbox.check_attempt_default, outbox.publication_log_default TO outbox_checker;
        GRANT INSERT ON outbox.half_message, outbox.op_message, outbox.commit_log, outbox.publication_log,
            outbox.check_attempt, outbox.audit_log TO outbox_checker;
        GRANT SELECT (half_id) ON outbox.audit_log TO outbox_checker;
        GRANT INSERT, DELETE ON outbox.transaction_key, outbox.check_queue TO outbox_checker;
        GRANT INSERT, UPDATE ON outbox.check_class TO outbox_checker;
        GRANT SELECT, INSERT, UPDATE, DELETE ON outbox.activity TO outbox_checker;
        GRANT INSERT, UPDATE, DELETE ON outbox.check_breaker, outbox.parked_message, outbox.held_record,
            outbox.already_published, outbox.progress TO outbox_checker;
        GRANT DELETE ON outbox.plain_message, outbox.recheck, outbox.half_message_default,
            outbox.check_attempt_default, outbox.publication_log_default TO outbox_checker;
        GRANT UPDATE (partitions, max_message_bytes, may_write, compacted) ON outbox.topic TO outbox_checker;
        GRANT UPDATE (paused, pause_reason, paused_at, paused_by, version, updated_at) ON outbox.producer_group TO outbox_checker;
        GRANT EXECUTE ON FUNCTION outbox.begin_admission, outbox.create_leaf, outbox.lock_leaves, outbox.detach_leaf,
            outbox.drop_leaf, outbox.forget_decisions TO outbox_checker;
    END IF;
END $$;

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'outbox_reconcile') THEN
        GRANT SELECT ON outbox.reconciliation_commits, outbox.reconciliation_halves, outbox.topic,
            outbox.held_record, outbox.already_published, outbox.publication_log, outbox.op_message,
            outbox.progress, outbox.check_class, outbox.check_queue, outbox.check_breaker, outbox.check_attempt,
            outbox.recheck, outbox.retired_leaf TO outbox_reconcile;
        GRANT SELECT, INSERT, UPDATE ON outbox.reconciliation_run, outbox.reconciliation_cut TO outbox_reconcile;
        GRANT SELECT, INSERT, UPDATE, DELETE ON outbox.reconciliation_finding, outbox.reconciliation_report
            TO outbox_reconcile;
        GRANT SELECT, INSERT, DELETE ON outbox.reconciliation_finding_event TO outbox_reconcile;
        GRANT EXECUTE ON FUNCTION outbox.note_reconciled(integer, bigint, integer) TO outbox_reconcile;
        GRANT SELECT (id, name, check_interval_seconds, check_max, max_age_seconds, transaction_timeout_seconds,
            paused, deleted_at) ON outbox.producer_group TO outbox_reconcile;
        GRANT SELECT (half_id, producer_group_id, parked_at, parked_reason, resumed_at)
            ON outbox.parked_message TO outbox_reconcile;
        GRANT SELECT (installation_id, base, plain_outbox) ON outbox.installation TO outbox_reconcile;
        GRANT SELECT (half_id, nonce, producer_group_id, topic_id, prepared_at, check_immunity_seconds, leader_id)
            ON outbox.half_message TO outbox_reconcile;
    END IF;
END $$;

-- Roles that publish in their own transactions, and the role that a deployment can make them members of. One that this
-- cluster does not have gets its rights by the next run.
DO $$
DECLARE
    publisher text;
BEGIN
    FOR publisher IN
        SELECT r.rolname FROM pg_roles r
        WHERE r.rolname = 'outbox_publish' OR r.rolname IN (SELECT p.role_name FROM outbox.plain_publisher p)
    LOOP
        EXECUTE format('GRANT USAGE ON SCHEMA outbox TO %I', publisher);
        EXECUTE format('GRANT EXECUTE ON FUNCTION outbox.publish TO %I', publisher);
    END LOOP;
END $$;
