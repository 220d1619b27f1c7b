-- What happened to findings, in the order of the ids; class, severity and status as they were after it. No row is ever
-- changed. Without a run it was done between two of them, by a rerun or an operator.
CREATE TABLE outbox.reconciliation_finding_event (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_reconciliation_finding_event PRIMARY KEY,
    finding_id text NOT NULL,
    happened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    event text NOT NULL CONSTRAINT ck_reconciliation_finding_event_event CHECK (
        event IN ('found', 'reopened', 'refined', 'resolved', 'fixed', 'unverifiable', 'accepted')),
    class text NOT NULL,
    severity text NOT NULL,
    status text NOT NULL CONSTRAINT ck_reconciliation_finding_event_status CHECK (
        status IN ('open', 'resolved', 'fixed', 'accepted', 'unverifiable')),
    run_id text
);
CREATE INDEX ix_reconciliation_finding_event_finding_id ON outbox.reconciliation_finding_event (finding_id, id);

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'outbox_reconcile') THEN
        GRANT SELECT, INSERT, DELETE ON outbox.reconciliation_finding_event TO outbox_reconcile;
    END IF;
END $$;
