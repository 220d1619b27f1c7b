package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Check asks what became of a local transaction.
type Check struct {
	MessageID     string    `json:"message_id"`
	TransactionID string    `json:"transaction_id"`
	ProducerGroup string    `json:"producer_group"`
	PreparedAt    time.Time `json:"prepared_at"`
	ReplyBy       time.Time `json:"reply_by"`
}

// Decide answers a check, as Barrier.Check does. Its context ends before the service stops waiting. An error is
// answered with UNKNOWN.
type Decide func(context.Context, Check) (Decision, error)

// NewEndpoint returns the handler of a group's check endpoint. During a rotation the service signs with both secrets.
func NewEndpoint(group, secret string, decide Decide) (http.Handler, error) {
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil || strings.TrimPrefix(secret, "whsec_") == "" {
		return nil, errors.New("a check secret is whsec_ and base64, and not empty")
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var asked question
		switch {
		case err != nil:
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		case verifier.Verify(body, r.Header) != nil:
			w.WriteHeader(http.StatusUnauthorized)
		case json.Unmarshal(body, &asked) != nil || len(asked.checks()) == 0:
			w.WriteHeader(http.StatusBadRequest)
		case slices.ContainsFunc(asked.checks(), func(each Check) bool { return each.ProducerGroup != group }):
			w.WriteHeader(http.StatusForbidden)
		default:
			w.Header().Set("content-type", "application/json")
			_ = json.NewEncoder(w).Encode(decide.answer(r.Context(), asked))
		}
	}
	return http.MaxBytesHandler(http.HandlerFunc(handler), 16<<20), nil
}

// question is the body of a request: one check, or several.
type question struct {
	Type      string
	Timestamp time.Time
	Data      struct {
		Check
		Checks []Check
	}
}

func (q question) checks() []Check {
	if q.Type == "transaction.check" {
		return []Check{q.Data.Check}
	}
	return q.Data.Checks
}

// answer decides all checks at the same time: each may wait for an open local transaction. It takes nine tenths of the
// time that the service gives.
func (d Decide) answer(ctx context.Context, asked question) any {
	checks := asked.checks()
	ctx, cancel := context.WithTimeout(ctx, checks[0].ReplyBy.Sub(asked.Timestamp)*9/10)
	defer cancel()
	verdicts := make([]verdict, len(checks))
	var open sync.WaitGroup
	for place, check := range checks {
		open.Go(func() { verdicts[place] = d.verdict(ctx, check) })
	}
	open.Wait()
	if asked.Type == "transaction.check" {
		return verdicts[0]
	}
	return map[string]any{"verdicts": verdicts}
}

// verdict is UNKNOWN in every doubtful case: the service asks again.
func (d Decide) verdict(ctx context.Context, check Check) (answer verdict) {
	answer = verdict{check.MessageID, Unknown}
	defer func() {
		if panicked := recover(); panicked != nil {
			slog.Error("a check of the outbox failed", "message_id", check.MessageID, "panic", panicked)
		}
	}()
	decision, err := d(ctx, check)
	if err != nil {
		slog.Error("a check of the outbox failed", "message_id", check.MessageID, "error", err)
	} else if decision == Commit || decision == Rollback {
		answer.Decision = decision
	}
	return answer
}
