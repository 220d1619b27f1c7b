// Does what the conformance kit asks: reads a command a line as JSON, and answers each with a line
// (tests/integration/client/conformance/fixtures_drivers.py).
package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"example.com/outbox"
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/mattn/go-sqlite3"
)

type command struct {
	Do, URL, Group, Secret, Verdict, Local string
	MessageID                              string   `json:"message_id"`
	TransactionIDs                         []string `json:"transaction_ids"`
	Key, Value                             []byte
	Followers                              [][]byte
	Headers                                map[string][]byte
	Seconds                                float64
	Days                                   int
	Database                               *struct{ Kind, URL, Socket string }
}

type members map[string]any

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 1<<20)
	for input.Scan() {
		var asked command
		answer, err := members{}, json.Unmarshal(input.Bytes(), &asked)
		if err == nil {
			answer, err = asked.run(context.Background())
		}
		if err != nil {
			answer = members{"error": err.Error()}
		}
		_ = json.NewEncoder(os.Stdout).Encode(answer)
	}
}

func (c command) run(ctx context.Context) (members, error) {
	switch c.Do {
	case "send":
		return c.send(ctx), nil
	case "serve":
		return c.serve(ctx)
	case "record":
		return c.record(ctx)
	case "purge":
		barrier, err := c.barrier(ctx)
		if err != nil {
			return nil, err
		}
		deleted, err := barrier.Purge(ctx, time.Duration(c.Days)*24*time.Hour)
		return members{"deleted": deleted}, err
	}
	return nil, fmt.Errorf("unknown command %q", c.Do)
}

// send sends a message for each transaction id, all at the same time.
func (c command) send(ctx context.Context) members {
	timeout := time.Duration(c.Seconds * float64(time.Second))
	producer := &outbox.Producer{URL: c.URL, Group: c.Group, Timeout: timeout}
	headers := map[string]*outbox.Header{}
	for name, value := range c.Headers {
		headers[name] = &outbox.Header{Value: value}
		if value == nil {
			headers[name] = nil
		}
	}
	results := make([]members, len(c.TransactionIDs))
	var sending sync.WaitGroup
	for place, id := range c.TransactionIDs {
		sending.Go(func() {
			message := outbox.Message{
				Topic: "invoices", Key: c.Key, Value: c.Value, Headers: headers, TransactionID: id,
			}
			for _, value := range c.Followers {
				message.Followers = append(message.Followers, outbox.Message{Topic: "invoices", Value: value})
			}
			ran := 0
			err := producer.Send(ctx, message, func(string) error {
				ran++
				if c.Local == "fail" {
					return errors.New("local")
				}
				return nil
			})
			results[place] = members{"outcome": outcome(err), "ran": ran}
		})
	}
	sending.Wait()
	return members{"results": results}
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "ended"
	case errors.Is(err, outbox.ErrNotEnded):
		return "end failed"
	case errors.Is(err, outbox.ErrCommitted):
		return "committed"
	case errors.Is(err, outbox.ErrRolledBack):
		return "rolled back"
	case errors.Is(err, outbox.ErrNoAnswer):
		return "no answer"
	case errors.Is(err, outbox.ErrRefused):
		return "refused"
	}
	return err.Error()
}

// serve answers checks with one verdict, or from the barrier of a database.
func (c command) serve(ctx context.Context) (members, error) {
	decide := func(context.Context, outbox.Check) (outbox.Decision, error) {
		if c.Verdict == "raise" {
			panic("as asked")
		}
		return outbox.Decision(c.Verdict), nil
	}
	if c.Database != nil {
		barrier, err := c.barrier(ctx)
		if err != nil {
			return nil, err
		}
		decide = barrier.Check
	}
	handler, err := outbox.NewEndpoint(c.Group, c.Secret, decide)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go http.Serve(listener, handler)
	return members{"url": fmt.Sprintf("http://%s/outbox/check", listener.Addr())}, nil
}

// record commits a local transaction that has no rows of its own.
func (c command) record(ctx context.Context) (members, error) {
	barrier, err := c.barrier(ctx)
	if err != nil {
		return nil, err
	}
	err = barrier.Run(ctx, c.MessageID, func(*sql.Tx) error { return nil })
	if errors.Is(err, outbox.ErrFenced) {
		return members{"outcome": "fenced"}, nil
	}
	return members{"outcome": "recorded"}, err
}

func (c command) barrier(ctx context.Context) (barrier outbox.Barrier, err error) {
	barrier = outbox.Barrier{Group: c.Group}
	switch c.Database.Kind {
	case "postgresql":
		barrier.Dialect = outbox.PostgreSQL
		barrier.DB, err = sql.Open("pgx", c.Database.URL)
	case "mysql":
		barrier.Dialect = outbox.MySQL
		barrier.DB, err = sql.Open("mysql", "root@unix("+c.Database.Socket+")/test")
	case "sqlite":
		barrier.Dialect = outbox.SQLite
		barrier.DB, err = sql.Open("sqlite3", "file:"+c.Database.URL+"?_busy_timeout=2000&_synchronous=FULL&_txlock=immediate")
	}
	if err != nil {
		return barrier, err
	}
	return barrier, barrier.CreateTable(ctx)
}
