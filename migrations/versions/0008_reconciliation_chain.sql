-- The last finished cut: one row for each audited source. Without a cut the next run reads everything.
CREATE TABLE outbox.reconciliation_cut (
    source text CONSTRAINT pk_reconciliation_cut PRIMARY KEY,
    run_id text NOT NULL,
    cut jsonb
);

-- What that run left open, by name: commits, records, listings in manifests, findings. Replaced by every run.
CREATE TABLE outbox.reconciliation_carry (
    side text NOT NULL CONSTRAINT ck_reconciliation_carry_side CHECK (side IN ('commit', 'record', 'listing', 'finding')),
    half_id bigint,
    facts text NOT NULL
);

-- Notes how far a shard is audited, which retirement waits for. The role writes no other row of this table.
CREATE FUNCTION outbox.note_reconciled(shard integer, xid bigint, n integer) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO outbox.progress (name, "position", position_n) VALUES ('reconcile:' || shard, xid, n)
    ON CONFLICT (name) DO UPDATE SET
        "position" = excluded."position", position_n = excluded.position_n, updated_at = clock_timestamp()
$$;
REVOKE ALL ON FUNCTION outbox.note_reconciled(integer, bigint, integer) FROM PUBLIC;

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'outbox_reconcile') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON outbox.reconciliation_cut, outbox.reconciliation_carry
            TO outbox_reconcile;
        GRANT EXECUTE ON FUNCTION outbox.note_reconciled(integer, bigint, integer) TO outbox_reconcile;
    END IF;
END $$;
