package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
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

// endpoint answers the checks of one producer group; decide returns COMMIT, ROLLBACK or UNKNOWN.
type endpoint struct {
	group  string
	key    []byte
	decide func(ctx context.Context, messageID string) (string, error)
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
	e.answer(r.Context(), w, asked)
}

func (e endpoint) answer(ctx context.Context, w http.ResponseWriter, asked envelope) {
	checks, batch := []check{asked.Data.check}, asked.Type == "transaction.check.batch"
	if batch {
		checks = asked.Data.Checks
	}
	for _, it := range checks {
		if it.ProducerGroup != e.group {
			refuse(w, http.StatusForbidden, "a check of another producer group")
			return
		}
	}
	verdicts := e.verdicts(ctx, checks)
	if batch {
		reply(w, http.StatusOK, map[string]any{"verdicts": verdicts})
		return
	}
	reply(w, http.StatusOK, verdicts[0])
}

// verdicts answers all checks at the same time: each may wait for an open local transaction.
func (e endpoint) verdicts(ctx context.Context, checks []check) []verdict {
	answers := make([]verdict, len(checks))
	var open sync.WaitGroup
	for place, it := range checks {
		open.Go(func() { answers[place] = e.verdict(ctx, it) })
	}
	open.Wait()
	return answers
}

// verdict answers UNKNOWN in every doubtful case: the service asks again.
func (e endpoint) verdict(ctx context.Context, it check) verdict {
	decision, err := e.decide(ctx, it.MessageID)
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
