// A service in Go that issues invoices, and announces each in Kafka if and only if it is stored.
//
//	billing issue NUMBER [forget]    prepare, local transaction, end; "forget" stops before the end
//	billing serve                    answers checks at PORT
//	billing verify SECRET ID TIMESTAMP SIGNATURES NOW  < body      exit 0 or 1
//
// Environment: OUTBOX_API_URL, OUTBOX_API_KEY (where keys are needed), DATABASE_URL, CHECK_SECRET, PORT, PRODUCER_GROUP.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const createInvoice = `CREATE TABLE IF NOT EXISTS invoice (number bigint PRIMARY KEY)`

var (
	group    = cmp.Or(os.Getenv("PRODUCER_GROUP"), "billing")
	errUsage = errors.New("usage: billing issue NUMBER [forget] | serve | verify SECRET ID TIMESTAMP SIGNATURES NOW")
)

// needed names the first of these environment variables that is missing.
func needed(names ...string) error {
	for _, name := range names {
		if os.Getenv(name) == "" {
			return fmt.Errorf("%s is not set in this terminal", name)
		}
	}
	return nil
}

func open(ctx context.Context) (*pgxpool.Pool, error) {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{createInvoice, createBarrier} {
		if _, err := pool.Exec(ctx, statement); err != nil {
			return nil, err
		}
	}
	return pool, nil
}

func issue(ctx context.Context, number int64, forget bool) error {
	if err := needed("OUTBOX_API_URL", "DATABASE_URL"); err != nil {
		return err
	}
	pool, err := open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	message := Message{
		ProducerGroup: group,
		Topic:         "invoices.issued",
		Key:           "cust-58",
		Value:         fmt.Sprintf(`{"invoice":%d}`, number),
		TransactionID: fmt.Sprintf("invoice-%d", number),
	}
	outbox := NewOutbox(os.Getenv("OUTBOX_API_URL"), os.Getenv("OUTBOX_API_KEY"))
	ended, err := outbox.Send(ctx, message, func(messageID string) error {
		if err := store(ctx, pool, number, messageID); err != nil {
			return err
		}
		if forget {
			os.Exit(0) // as if the process had died here
		}
		return nil
	})
	if errors.Is(err, ErrCommitted) {
		return show(ctx, pool, number)
	}
	if err != nil {
		return err
	}
	fmt.Println(string(ended))
	return nil
}

// show prints the row of an invoice that another call has issued.
func show(ctx context.Context, pool *pgxpool.Pool, number int64) error {
	if err := pool.QueryRow(ctx, `SELECT number FROM invoice WHERE number = $1`, number).Scan(&number); err != nil {
		return err
	}
	fmt.Printf("invoice %d is stored\n", number)
	return nil
}

// store is the local transaction: the invoice and the barrier's row, or neither.
func store(ctx context.Context, pool *pgxpool.Pool, number int64, messageID string) error {
	return pgx.BeginTxFunc(ctx, pool, readCommitted, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO invoice VALUES ($1)`, number); err != nil {
			return err
		}
		return record(ctx, tx, group, messageID)
	})
}

func serve(ctx context.Context) error {
	if err := needed("CHECK_SECRET", "DATABASE_URL"); err != nil {
		return err
	}
	key, err := Key(os.Getenv("CHECK_SECRET"))
	if err != nil {
		return err
	}
	pool, err := open(ctx)
	if err != nil {
		return err
	}
	address := "127.0.0.1:" + cmp.Or(os.Getenv("PORT"), "9000")
	server := &http.Server{
		Addr: address,
		Handler: endpoint{group, key, func(ctx context.Context, messageID string) (string, error) {
			return decide(ctx, pool, group, messageID)
		}},
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	log.Printf("answering checks of the group %s at http://%s", group, address)
	return server.Serve(listener)
}

func verifyArguments(arguments []string) bool {
	body, err := io.ReadAll(os.Stdin)
	key, badKey := Key(arguments[0])
	now, badNow := strconv.ParseInt(arguments[4], 10, 64)
	if err != nil || badKey != nil || badNow != nil {
		return false
	}
	return Verify(key, arguments[1], arguments[2], arguments[3], body, now)
}

func run(arguments []string) error {
	word, count := append(arguments, "")[0], len(arguments)
	switch {
	case word == "issue" && count >= 2:
		number, err := strconv.ParseInt(arguments[1], 10, 64)
		if err != nil {
			return errUsage
		}
		return issue(context.Background(), number, count > 2 && arguments[2] == "forget")
	case word == "serve" && count == 1:
		return serve(context.Background())
	case word == "verify" && count == 6:
		if !verifyArguments(arguments[1:]) {
			os.Exit(1)
		}
		return nil
	}
	return errUsage
}

func main() {
	log.SetFlags(0)
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}
