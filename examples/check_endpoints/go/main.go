// A check endpoint in Go: verifies the signature, looks up the transaction, answers.
//
//	check-endpoint serve                        PORT, PRODUCER_GROUP, CHECK_SECRET, TRANSACTIONS
//	check-endpoint verify SECRET ID TIMESTAMP SIGNATURES NOW  < body      exit 0 or 1
package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const bodyMaxBytes = 16 << 20

type check struct {
	MessageID     string `json:"message_id"`
	TransactionID string `json:"transaction_id"`
	ProducerGroup string `json:"producer_group"`
}

type envelope struct {
	Type string `json:"type"`
	Data struct {
		check
		Checks []check `json:"checks"`
	} `json:"data"`
}

type verdict struct {
	MessageID string `json:"message_id"`
	Decision  string `json:"decision"`
	Reason    string `json:"reason,omitempty"`
}

// endpoint answers for one producer group; decide reads the group's database.
type endpoint struct {
	group  string
	key    []byte
	decide func(transactionID string) (string, error)
}

func (e endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMaxBytes))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "the body is too long")
		return
	}
	h := r.Header
	if !Verify(e.key, h.Get("webhook-id"), h.Get("webhook-timestamp"), h.Get("webhook-signature"), body, time.Now().Unix()) {
		refuse(w, http.StatusUnauthorized, "the signature is not valid")
		return
	}
	var asked envelope
	if json.Unmarshal(body, &asked) != nil {
		refuse(w, http.StatusBadRequest, "not a check")
		return
	}
	e.answer(w, asked)
}

func (e endpoint) answer(w http.ResponseWriter, asked envelope) {
	checks, batch := []check{asked.Data.check}, asked.Type == "transaction.check.batch"
	if batch {
		checks = asked.Data.Checks
	}
	verdicts := make([]verdict, 0, len(checks))
	for _, it := range checks {
		if it.ProducerGroup != e.group {
			refuse(w, http.StatusForbidden, "a check of another producer group")
			return
		}
		verdicts = append(verdicts, e.verdict(it))
	}
	if batch {
		reply(w, http.StatusOK, map[string]any{"verdicts": verdicts})
		return
	}
	reply(w, http.StatusOK, verdicts[0])
}

// verdict answers UNKNOWN in every doubtful case: an error, or a transaction that is not found
// (yet). Only a barrier turns "not found" into ROLLBACK.
func (e endpoint) verdict(it check) verdict {
	decision, err := e.decide(it.TransactionID)
	if err != nil {
		return verdict{it.MessageID, "UNKNOWN", "the database did not answer"}
	}
	return verdict{MessageID: it.MessageID, Decision: decision}
}

func refuse(w http.ResponseWriter, status int, title string) {
	reply(w, status, map[string]any{"status": status, "title": title})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// fromFile replaces the lookup in your database: lines of a transaction id and its decision.
func fromFile(path string) func(string) (string, error) {
	return func(transactionID string) (string, error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		for _, line := range strings.Split(string(text), "\n") {
			if fields := strings.Fields(line); len(fields) == 2 && fields[0] == transactionID {
				return fields[1], nil
			}
		}
		return "UNKNOWN", nil
	}
}

func serve() {
	key, err := Key(os.Getenv("CHECK_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	answers := endpoint{os.Getenv("PRODUCER_GROUP"), key, fromFile(os.Getenv("TRANSACTIONS"))}
	server := &http.Server{
		Addr:              "127.0.0.1:" + os.Getenv("PORT"),
		Handler:           answers,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
	}
	log.Fatal(server.ListenAndServe())
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

func main() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "serve":
		serve()
	case len(os.Args) == 7 && os.Args[1] == "verify":
		if !verifyArguments(os.Args[2:]) {
			os.Exit(1)
		}
	default:
		log.Fatal("usage: check-endpoint serve | verify SECRET ID TIMESTAMP SIGNATURES NOW")
	}
}
