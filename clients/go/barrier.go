package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Dialect is what a database has of its own: one of PostgreSQL, MySQL and SQLite.
type Dialect struct{ fromPostgreSQL *strings.Replacer }

// A database of SQLite is a file, with synchronous = FULL and a busy_timeout.
var (
	PostgreSQL = Dialect{strings.NewReplacer()}
	MySQL      = Dialect{strings.NewReplacer(
		" text", " varchar(128) CHARACTER SET ascii COLLATE ascii_bin", durably, "", orNothing,
		"ON DUPLICATE KEY UPDATE outcome = outcome", "to_timestamp($1::bigint)", "FROM_UNIXTIME(?)",
		"timestamptz", "timestamp", "clock_timestamp()", "CURRENT_TIMESTAMP", "$1", "?", "$2", "?", "$3", "?")}
	SQLite = Dialect{strings.NewReplacer(
		durably, "WHERE true", "to_timestamp($1::bigint)", "datetime(?, 'unixepoch')", "greatest", "max",
		"timestamptz", "text", "clock_timestamp()", "CURRENT_TIMESTAMP", "$1", "?", "$2", "?", "$3", "?")}
)

// The statements of docs/barrier.md, for PostgreSQL. A placeholder stands once in each, and in order.
const (
	create = `CREATE TABLE IF NOT EXISTS outbox_barrier (
		producer_group text NOT NULL,
		message_id     text NOT NULL,
		outcome        text NOT NULL CHECK (outcome IN ('committed', 'fenced')),
		created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
		PRIMARY KEY (producer_group, message_id))`
	insert    = `INSERT INTO outbox_barrier (producer_group, message_id, outcome`
	record    = insert + `) VALUES ($1, $2, 'committed')`
	fence     = insert + `) SELECT $1, $2, 'fenced' ` + durably + " " + orNothing
	durably   = `FROM set_config('synchronous_commit', 'on', true)`
	orNothing = `ON CONFLICT DO NOTHING`
	look      = `SELECT outcome, EXISTS (SELECT 1 FROM outbox_barrier` + isMark + ` AND created_at > to_timestamp($1::bigint))
		FROM outbox_barrier WHERE producer_group = $2 AND message_id = $3`
	isMark = ` WHERE producer_group = '' AND message_id = 'purged-before'`
	mark   = insert + `, created_at) VALUES ('', 'purged-before', 'fenced', to_timestamp($1::bigint)) ` + orNothing
	remark = `UPDATE outbox_barrier SET created_at = greatest(created_at, to_timestamp($1::bigint))` + isMark
	purge  = `DELETE FROM outbox_barrier WHERE producer_group <> '' AND created_at < to_timestamp($1::bigint)`
)

// duplicate knows the errors of pgx and lib/pq, of go-sql-driver/mysql, and of the drivers of SQLite.
var duplicate = regexp.MustCompile("23505|duplicate key|Error 1062|UNIQUE constraint failed")

// Barrier makes "no row" an answer: of "committed" and "fenced", only one can ever be stored for a message. DB is the
// primary of the database that has your own rows.
type Barrier struct {
	DB      *sql.DB
	Dialect Dialect
	Group   string
}

// CreateTable creates the table if it is missing.
func (b Barrier) CreateTable(ctx context.Context) error {
	_, err := b.DB.ExecContext(ctx, b.Dialect.fromPostgreSQL.Replace(create))
	return err
}

// Run runs the local transaction: the work and the row of the barrier, or neither.
func (b Barrier) Run(ctx context.Context, messageID string, work func(*sql.Tx) error) error {
	tx, err := b.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := work(tx); err != nil {
		return err
	}
	if err := b.Record(ctx, tx, messageID); err != nil {
		return err
	}
	return tx.Commit()
}

// Record stores "committed" in a local transaction of your own. After any error roll back; ErrFenced says that the
// message was decided before.
func (b Barrier) Record(ctx context.Context, tx *sql.Tx, messageID string) error {
	_, err := tx.ExecContext(ctx, b.Dialect.fromPostgreSQL.Replace(record), b.Group, messageID)
	if err != nil && duplicate.MatchString(err.Error()) {
		return fmt.Errorf("%w: %w", ErrFenced, err)
	}
	return err
}

// Check forbids a commit from now on, then reports which of the two rows is stored. It waits at most two seconds for an
// open local transaction; then it returns an error, which an endpoint answers with UNKNOWN.
func (b Barrier) Check(ctx context.Context, check Check) (Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // less than the check_timeout_seconds of a group
	defer cancel()
	if _, err := b.DB.ExecContext(ctx, b.Dialect.fromPostgreSQL.Replace(fence), b.Group, check.MessageID); err != nil {
		return Unknown, err
	}
	prepared := check.PreparedAt.Add(-time.Hour).Unix() // the clocks of both databases may differ
	row := b.DB.QueryRowContext(ctx, b.Dialect.fromPostgreSQL.Replace(look), prepared, b.Group, check.MessageID)
	var outcome string
	var mayBePurged bool
	err := row.Scan(&outcome, &mayBePurged)
	switch {
	case err == nil && outcome == "committed":
		return Commit, nil
	case err == nil && !mayBePurged:
		return Rollback, nil
	}
	return Unknown, err
}

// Purge deletes rows older than an age of at least 7 days and returns how many. It stores up to which time first, so
// that a check of an older message is answered UNKNOWN.
func (b Barrier) Purge(ctx context.Context, age time.Duration) (deleted int64, err error) {
	if age < 7*24*time.Hour {
		return 0, errors.New("rows are kept at least 7 days")
	}
	horizon := time.Now().Add(-age).Unix()
	var done sql.Result
	for _, statement := range []string{mark, remark, purge} {
		if done, err = b.DB.ExecContext(ctx, b.Dialect.fromPostgreSQL.Replace(statement), horizon); err != nil {
			return 0, err
		}
	}
	return done.RowsAffected()
}
