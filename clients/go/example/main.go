// Issues invoices ("issue NUMBER [forget]"), and answers the checks of their messages ("serve").
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"

	"example.com/outbox"
	_ "github.com/jackc/pgx/v5/stdlib"
)

func main() {
	log.SetFlags(0)
	ctx, group := context.Background(), cmp.Or(os.Getenv("PRODUCER_GROUP"), "billing")
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	must(err)
	barrier := outbox.Barrier{DB: db, Dialect: outbox.PostgreSQL, Group: group}
	must(barrier.CreateTable(ctx))
	if os.Args[1] == "serve" {
		endpoint, err := outbox.NewEndpoint(group, os.Getenv("CHECK_SECRET"), barrier.Check)
		must(err)
		must(http.ListenAndServe("127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "9000"), endpoint))
	}
	_, err = db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS invoice (number bigint PRIMARY KEY)")
	must(err)
	number := os.Args[2]
	producer := &outbox.Producer{URL: os.Getenv("OUTBOX_API_URL"), APIKey: os.Getenv("OUTBOX_API_KEY"), Group: group}
	message := outbox.Message{
		Topic: "invoices.issued", Key: []byte("cust-58"), Value: []byte(`{"invoice":` + number + `}`),
		TransactionID: "invoice-" + number,
	}
	err = producer.Send(ctx, message, func(messageID string) error {
		err := barrier.Run(ctx, messageID, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO invoice VALUES ($1)", number)
			return err
		})
		if err == nil && len(os.Args) > 3 {
			os.Exit(0) // "forget": as if the process had died here
		}
		return err
	})
	if !errors.Is(err, outbox.ErrCommitted) { // an earlier call has stored it
		must(err)
	}
	fmt.Println("invoice", number, "is stored")
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
