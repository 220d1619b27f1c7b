-- Endpoints that keep failing: open until probe_at, then one probe (half-open). Closed: no row.
CREATE TABLE outbox.check_breaker (
    producer_group_id int NOT NULL,
    wait_seconds      int NOT NULL CHECK (wait_seconds BETWEEN 1 AND 300),
    probe_at          timestamptz NOT NULL,
    opened_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT pk_check_breaker PRIMARY KEY (producer_group_id)
);
