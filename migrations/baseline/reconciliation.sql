-- Reconciliation: what the audit reads, and what it has found.

-- Committed messages in decision order, as Spark reads them: arrays, so few and narrow rows.
CREATE VIEW outbox.reconciliation_commits AS
SELECT shard, xid, committed_at, half_ids, content_digests FROM outbox.commit_log;

-- A half message with its names, its decision and whether it is parked; looked up by half_id, bounded.
CREATE VIEW outbox.reconciliation_halves AS
SELECT h.*, o.decision, o.decided_by, o.decided_at,
    o.half_id IS NULL AND EXISTS (
        SELECT FROM outbox.parked_message p WHERE p.half_id = h.half_id AND p.resumed_at IS NULL) AS parked
FROM outbox.named_half h
LEFT JOIN outbox.op_message o ON o.half_id = h.half_id;

-- One row a finished run.
CREATE TABLE outbox.reconciliation_run (
    run_id text CONSTRAINT pk_reconciliation_run PRIMARY KEY,
    previous_run_id text,
    mode text NOT NULL,
    started_at timestamptz NOT NULL,
    cut_at timestamptz NOT NULL,
    finished_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    verdict text NOT NULL CONSTRAINT ck_reconciliation_run_verdict CHECK (verdict IN ('clean', 'findings', 'inconclusive')),
    sentence text NOT NULL,
    plan jsonb NOT NULL,
    totals jsonb NOT NULL
);
CREATE INDEX ix_reconciliation_run_finished_at ON outbox.reconciliation_run (finished_at);

-- Findings from run to run; class and detail name the cause, evidence has no value. accepted_until: an operator accepts
-- it until then.
CREATE TABLE outbox.reconciliation_finding (
    finding_id text CONSTRAINT pk_reconciliation_finding PRIMARY KEY,
    first_run_id text NOT NULL,
    last_run_id text NOT NULL,
    status text NOT NULL CONSTRAINT ck_reconciliation_finding_status CHECK (
        status IN ('open', 'resolved', 'fixed', 'accepted', 'unverifiable')),
    kind text NOT NULL,
    class text NOT NULL,
    detail text NOT NULL,
    severity text NOT NULL,
    half_id bigint,
    topic text,
    evidence jsonb NOT NULL,
    found_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    accepted_until timestamptz
);
CREATE INDEX ix_reconciliation_finding_open ON outbox.reconciliation_finding (kind, class) WHERE status = 'open';
CREATE INDEX ix_reconciliation_finding_half_id ON outbox.reconciliation_finding (half_id) WHERE half_id IS NOT NULL;

-- What happened to findings, in the order of the ids; class, detail, severity and status as they were after it. No row
-- is ever changed. Without a run an operator did it.
CREATE TABLE outbox.reconciliation_finding_event (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_reconciliation_finding_event PRIMARY KEY,
    finding_id text NOT NULL,
    happened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    event text NOT NULL CONSTRAINT ck_reconciliation_finding_event_event CHECK (
        event IN ('found', 'reopened', 'refined', 'resolved', 'fixed', 'unverifiable', 'accepted')),
    class text NOT NULL,
    detail text NOT NULL,
    severity text NOT NULL,
    status text NOT NULL CONSTRAINT ck_reconciliation_finding_event_status CHECK (
        status IN ('open', 'resolved', 'fixed', 'accepted', 'unverifiable')),
    run_id text
);
CREATE INDEX ix_reconciliation_finding_event_finding_id ON outbox.reconciliation_finding_event (finding_id, id);

-- The reports of the last runs, one row a format.
CREATE TABLE outbox.reconciliation_report (
    run_id text NOT NULL,
    format text NOT NULL CONSTRAINT ck_reconciliation_report_format CHECK (format IN ('html', 'json', 'csv')),
    body text NOT NULL,
    CONSTRAINT pk_reconciliation_report PRIMARY KEY (run_id, format)
);

-- The last finished cut: one row for each audited source.
CREATE TABLE outbox.reconciliation_cut (
    source text CONSTRAINT pk_reconciliation_cut PRIMARY KEY,
    run_id text NOT NULL,
    cut jsonb NOT NULL
);

-- Notes how far a shard is audited, which retirement waits for. The role writes no other row of this table.
CREATE FUNCTION outbox.note_reconciled(shard integer, xid bigint, n integer) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO outbox.progress (name, "position", position_n) VALUES ('reconcile:' || shard, xid, n)
    ON CONFLICT (name) DO UPDATE SET
        "position" = excluded."position", position_n = excluded.position_n, updated_at = clock_timestamp()
$$;
