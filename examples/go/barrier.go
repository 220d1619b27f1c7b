package main

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	createBarrier = `CREATE TABLE IF NOT EXISTS outbox_barrier (
  producer_group text NOT NULL,
  message_id     text NOT NULL,
  outcome        text NOT NULL CHECK (outcome IN ('committed', 'fenced')),
  created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (producer_group, message_id)
)`
	recordSQL = `INSERT INTO outbox_barrier (producer_group, message_id, outcome) VALUES ($1, $2, 'committed')`
	fenceSQL  = `INSERT INTO outbox_barrier (producer_group, message_id, outcome) VALUES ($1, $2, 'fenced')
ON CONFLICT DO NOTHING`
	readSQL = `SELECT outcome FROM outbox_barrier WHERE producer_group = $1 AND message_id = $2`
)

var readCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted}

// record belongs into the local transaction. A duplicate key means that the message is fenced: roll back.
func record(ctx context.Context, tx pgx.Tx, group, messageID string) error {
	_, err := tx.Exec(ctx, recordSQL, group, messageID)
	return err
}

// decide answers a check: it forbids a commit from now on, then reports which of the two rows exists.
func decide(ctx context.Context, pool *pgxpool.Pool, group, messageID string) (string, error) {
	if err := pgx.BeginTxFunc(ctx, pool, readCommitted, func(tx pgx.Tx) error {
		return fence(ctx, tx, group, messageID)
	}); err != nil {
		return "", err
	}
	var outcome string
	if err := pool.QueryRow(ctx, readSQL, group, messageID).Scan(&outcome); err != nil {
		return "", err
	}
	if outcome == "committed" {
		return "COMMIT", nil
	}
	return "ROLLBACK", nil
}

func fence(ctx context.Context, tx pgx.Tx, group, messageID string) error {
	settings := `SELECT set_config('lock_timeout', '2s', true), set_config('synchronous_commit', 'on', true)`
	if _, err := tx.Exec(ctx, settings); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, fenceSQL, group, messageID)
	return err
}
