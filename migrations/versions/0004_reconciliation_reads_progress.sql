-- The audit's role may read where each relay stands.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'outbox_reconcile') THEN
        GRANT SELECT ON outbox.progress TO outbox_reconcile;
    END IF;
END $$;
