// Issues invoices; Kafka gets a record of an invoice if, and only if, it is stored.
//
//	billing issue NUMBER [forget]    prepare, local transaction, end; "forget" stops before the end
//	billing serve                    answers checks at PORT
package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"

	"example.com/outbox"
	_ "github.com/jackc/pgx/v5/stdlib"
)

var group = cmp.Or(os.Getenv("PRODUCER_GROUP"), "billing")

func issue(ctx context.Context, barrier outbox.Barrier, number string, forget bool) error {
	url, key := os.Getenv("OUTBOX_API_URL"), os.Getenv("OUTBOX_API_KEY")
	producer := outbox.NewProducer(outbox.Config{URL: url, APIKey: key, Group: group})
	message := outbox.Message{
		Topic: "invoices.issued", Key: []byte("cust-58"), Value: []byte(`{"invoice":` + number + `}`),
		TransactionID: "invoice-" + number,
	}
	ended, err := producer.Send(ctx, message, func(ctx context.Context, prepared outbox.Prepared) error {
		err := barrier.Run(ctx, prepared, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO invoice VALUES ($1)", number)
			return err
		})
		if forget && err == nil {
			os.Exit(0) // as if the process had died here
		}
		return err
	})
	if errors.Is(err, outbox.ErrCommitted) {
		fmt.Println("invoice", number, "is stored")
		return nil
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(ended)
}

func serve(barrier outbox.Barrier) error {
	endpoint, err := outbox.NewEndpoint(group, os.Getenv("CHECK_SECRET"), barrier.Check)
	if err != nil {
		return err
	}
	return http.ListenAndServe("127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "9000"), endpoint)
}

func main() {
	log.SetFlags(0)
	ctx := context.Background()
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	barrier := outbox.Barrier{DB: db, Dialect: outbox.PostgreSQL, Group: group}
	if err == nil {
		_, err = db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS invoice (number bigint PRIMARY KEY)")
	}
	if err == nil {
		err = barrier.CreateTable(ctx)
	}
	switch {
	case err != nil:
	case len(os.Args) > 2 && os.Args[1] == "issue":
		err = issue(ctx, barrier, os.Args[2], len(os.Args) > 3)
	case len(os.Args) > 1 && os.Args[1] == "serve":
		err = serve(barrier)
	default:
		err = errors.New("usage: billing issue NUMBER [forget] | serve")
	}
	if err != nil {
		log.Fatal(err)
	}
}
