CREATE TABLE IF NOT EXISTS outbox_barrier (
  producer_group varchar(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  message_id     varchar(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  outcome        varchar(9) CHARACTER SET ascii COLLATE ascii_bin NOT NULL CHECK (outcome IN ('committed', 'fenced')),
  created_at     timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (producer_group, message_id)
) ENGINE = InnoDB
