-- The audit's role may read where the checks stand: no payload, no secret, no address.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'outbox_reconcile') THEN
        GRANT SELECT ON outbox.check_class, outbox.check_queue, outbox.check_breaker, outbox.check_attempt, outbox.recheck
            TO outbox_reconcile;
        GRANT SELECT (id, name, check_interval_seconds, check_max, max_age_seconds, transaction_timeout_seconds,
            paused, deleted_at) ON outbox.producer_group TO outbox_reconcile;
        GRANT SELECT (half_id, producer_group_id, parked_at, parked_reason, resumed_at)
            ON outbox.parked_message TO outbox_reconcile;
        GRANT SELECT (base, plain_outbox) ON outbox.installation TO outbox_reconcile;
        GRANT SELECT (half_id, nonce, producer_group_id, topic_id, prepared_at, check_immunity_seconds)
            ON outbox.half_message TO outbox_reconcile;
    END IF;
END $$;
