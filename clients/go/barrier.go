package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	keepAtLeast = 7 * 24 * time.Hour
	clockMargin = time.Hour
	// fenceTimeout is less than the check_timeout_seconds of a group.
	fenceTimeout = 2 * time.Second
)

// Dialect is what a database has of its own: one of PostgreSQL, MySQL and SQLite.
type Dialect struct {
	words     *strings.Replacer
	durable   string
	isolation sql.IsolationLevel
}

// The statements are those of docs/barrier.md. SQLite must be a file, with synchronous = FULL and a busy_timeout.
var (
	PostgreSQL = Dialect{
		words: strings.NewReplacer("{text}", "text", "{time}", "timestamptz", "{now}", "clock_timestamp()",
			"{at}", "to_timestamp($1)", "{first}", "$1", "{second}", "$2",
			"{otherwise}", "ON CONFLICT DO NOTHING", "{latest}", "greatest"),
		durable: `SELECT set_config('synchronous_commit', 'on', true)
			WHERE current_setting('synchronous_commit') = 'off'`,
		isolation: sql.LevelReadCommitted,
	}
	MySQL = Dialect{
		words: strings.NewReplacer("{text}", "varchar(128) CHARACTER SET ascii COLLATE ascii_bin", "{time}", "timestamp",
			"{now}", "CURRENT_TIMESTAMP", "{at}", "FROM_UNIXTIME(?)", "{first}", "?", "{second}", "?",
			"{otherwise}", "ON DUPLICATE KEY UPDATE outcome = outcome", "{latest}", "greatest"),
		isolation: sql.LevelReadCommitted,
	}
	SQLite = Dialect{
		words: strings.NewReplacer("{text}", "text", "{time}", "text", "{now}", "CURRENT_TIMESTAMP",
			"{at}", "datetime(?, 'unixepoch')", "{first}", "?", "{second}", "?",
			"{otherwise}", "ON CONFLICT DO NOTHING", "{latest}", "max"),
	}
)

const (
	create = `CREATE TABLE IF NOT EXISTS outbox_barrier (
		producer_group {text} NOT NULL,
		message_id     {text} NOT NULL,
		outcome        {text} NOT NULL CHECK (outcome IN ('committed', 'fenced')),
		created_at     {time} NOT NULL DEFAULT {now},
		PRIMARY KEY (producer_group, message_id))`
	record = `INSERT INTO outbox_barrier (producer_group, message_id, outcome, created_at)
		VALUES ({first}, {second}, 'committed', {now})`
	fence = `INSERT INTO outbox_barrier (producer_group, message_id, outcome)
		VALUES ({first}, {second}, 'fenced') {otherwise}`
	read      = `SELECT outcome FROM outbox_barrier WHERE producer_group = {first} AND message_id = {second}`
	mark      = `producer_group = '' AND message_id = 'purged-before'`
	isPurged  = `SELECT count(*) FROM outbox_barrier WHERE ` + mark + ` AND created_at > {at}`
	firstMark = `INSERT INTO outbox_barrier (producer_group, message_id, outcome, created_at)
		VALUES ('', 'purged-before', 'fenced', {at}) {otherwise}`
	laterMark = `UPDATE outbox_barrier SET created_at = {latest}(created_at, {at}) WHERE ` + mark
	purge     = `DELETE FROM outbox_barrier WHERE producer_group <> '' AND created_at < {at}`
)

// Barrier makes "no row" an answer: of "committed" and "fenced", only one can ever be stored for a message. DB is the
// primary of the database that has your own rows.
type Barrier struct {
	DB      *sql.DB
	Dialect Dialect
	Group   string
}

// CreateTable creates the table if it is missing.
func (b Barrier) CreateTable(ctx context.Context) error {
	_, err := b.DB.ExecContext(ctx, b.Dialect.words.Replace(create))
	return err
}

// Run runs the local transaction: the work and the row of the barrier, or neither.
func (b Barrier) Run(ctx context.Context, prepared Prepared, work func(*sql.Tx) error) error {
	tx, err := b.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := work(tx); err != nil {
		return err
	}
	if err := b.Record(ctx, tx, prepared.MessageID); err != nil {
		return err
	}
	return tx.Commit()
}

// Record stores "committed" in a local transaction of your own. After any error roll back; ErrFenced says that the
// message was decided before.
func (b Barrier) Record(ctx context.Context, tx *sql.Tx, messageID string) error {
	_, err := tx.ExecContext(ctx, b.Dialect.words.Replace(record), b.Group, messageID)
	if err != nil && isDuplicate(err) {
		return fmt.Errorf("%w: %w", ErrFenced, err)
	}
	return err
}

// isDuplicate knows the errors of pgx and lib/pq, of go-sql-driver/mysql, and of the drivers of SQLite.
func isDuplicate(err error) bool {
	var postgres interface{ SQLState() string }
	if errors.As(err, &postgres) {
		return postgres.SQLState() == "23505"
	}
	return strings.Contains(err.Error(), "Error 1062") ||
		strings.Contains(err.Error(), "UNIQUE constraint failed: outbox_barrier")
}

// Check forbids a commit from now on, then reports which of the two rows is stored. It waits at most two seconds for an
// open local transaction; then it returns an error, which an endpoint answers with UNKNOWN.
func (b Barrier) Check(ctx context.Context, check Check) (Verdict, error) {
	if err := b.fence(ctx, check.MessageID); err != nil {
		return Verdict{}, err
	}
	var outcome string
	err := b.DB.QueryRowContext(ctx, b.Dialect.words.Replace(read), b.Group, check.MessageID).Scan(&outcome)
	if err != nil || outcome == "committed" {
		return Verdict{Decision: Commit}, err
	}
	var purged int
	prepared := seconds(check.PreparedAt.Add(-clockMargin))
	err = b.DB.QueryRowContext(ctx, b.Dialect.words.Replace(isPurged), prepared).Scan(&purged)
	if err != nil || purged > 0 {
		return Verdict{Decision: Unknown, Reason: "its row may have been purged"}, err
	}
	return Verdict{Decision: Rollback}, nil
}

func (b Barrier) fence(ctx context.Context, messageID string) error {
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	tx, err := b.DB.BeginTx(ctx, &sql.TxOptions{Isolation: b.Dialect.isolation})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if b.Dialect.durable != "" {
		if _, err := tx.ExecContext(ctx, b.Dialect.durable); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, b.Dialect.words.Replace(fence), b.Group, messageID); err != nil {
		return err
	}
	return tx.Commit()
}

// Purge deletes rows older than an age of at least 7 days and returns how many. It stores up to which time first, so
// that a check of an older message is answered UNKNOWN.
func (b Barrier) Purge(ctx context.Context, age time.Duration) (deleted int64, err error) {
	if age < keepAtLeast {
		return 0, errors.New("rows are kept at least 7 days")
	}
	horizon := seconds(time.Now().Add(-age))
	var done sql.Result
	for _, statement := range []string{firstMark, laterMark, purge} {
		if done, err = b.DB.ExecContext(ctx, b.Dialect.words.Replace(statement), horizon); err != nil {
			return 0, err
		}
	}
	return done.RowsAffected()
}

// seconds is a float because PostgreSQL's to_timestamp takes one.
func seconds(at time.Time) float64 { return float64(at.Unix()) }
