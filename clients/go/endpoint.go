package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	bodyMaxBytes     = 16 << 20
	reasonCharacters = 80 // the service reads 64 KiB of the answer to 100 checks
)

// Check asks what became of a local transaction.
type Check struct {
	MessageID     string    `json:"message_id"`
	TransactionID string    `json:"transaction_id"`
	ProducerGroup string    `json:"producer_group"`
	Topic         string    `json:"topic"`
	PreparedAt    time.Time `json:"prepared_at"`
	ReplyBy       time.Time `json:"reply_by"`
}

// Verdict is the answer to a check. RetryAfterSeconds belongs to UNKNOWN: the next check comes no earlier.
type Verdict struct {
	MessageID         string   `json:"message_id"`
	Decision          Decision `json:"decision"`
	Reason            string   `json:"reason,omitempty"`
	RetryAfterSeconds int      `json:"retry_after_seconds,omitempty"`
}

// Decide answers a check, as Barrier.Check does. Its context ends before the service stops waiting. An error is
// answered with UNKNOWN.
type Decide func(context.Context, Check) (Verdict, error)

type endpoint struct {
	group    string
	verifier *standardwebhooks.Webhook
	decide   Decide
}

// NewEndpoint returns the handler of a group's check endpoint. During a rotation the service signs with both secrets.
func NewEndpoint(group, secret string, decide Decide) (http.Handler, error) {
	verifier, err := standardwebhooks.NewWebhook(secret)
	if key, named := strings.CutPrefix(secret, "whsec_"); err != nil || !named || key == "" {
		return nil, errors.New("a check secret is whsec_ and base64, and not empty")
	}
	return &endpoint{group, verifier, decide}, nil
}

type envelope struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      struct {
		Check
		Checks []Check `json:"checks"`
	} `json:"data"`
}

// checks returns the checks of both forms; none if it is neither.
func (e envelope) checks() []Check {
	switch e.Type {
	case "transaction.check":
		return []Check{e.Data.Check}
	case "transaction.check.batch":
		return e.Data.Checks
	}
	return nil
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMaxBytes))
	if err != nil {
		reply(w, http.StatusRequestEntityTooLarge, "the body cannot be read, or is too long")
		return
	}
	if e.verifier.Verify(body, r.Header) != nil {
		reply(w, http.StatusUnauthorized, "the signature is not valid")
		return
	}
	var asked envelope
	if json.Unmarshal(body, &asked) != nil || len(asked.checks()) == 0 {
		reply(w, http.StatusBadRequest, "not a check")
		return
	}
	for _, check := range asked.checks() {
		if check.ProducerGroup != e.group {
			reply(w, http.StatusForbidden, "a check of another producer group")
			return
		}
	}
	verdicts := e.verdicts(r.Context(), asked)
	if asked.Data.Checks != nil {
		reply(w, http.StatusOK, map[string]any{"verdicts": verdicts})
		return
	}
	reply(w, http.StatusOK, verdicts[0])
}

// verdicts answers all checks at the same time: each may wait for an open local transaction. It takes nine tenths of
// the time that the service gives.
func (e *endpoint) verdicts(ctx context.Context, asked envelope) []Verdict {
	answers := make([]Verdict, len(asked.checks()))
	var open sync.WaitGroup
	for place, check := range asked.checks() {
		open.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, check.ReplyBy.Sub(asked.Timestamp)*9/10)
			defer cancel()
			answers[place] = e.verdict(ctx, check)
		})
	}
	open.Wait()
	return answers
}

// verdict answers UNKNOWN in every doubtful case: the service asks again.
func (e *endpoint) verdict(ctx context.Context, check Check) Verdict {
	verdict, err := e.decided(ctx, check)
	switch verdict.Decision {
	case Commit, Rollback, Unknown:
	default:
		err = errors.Join(err, fmt.Errorf("%q is no decision", verdict.Decision))
	}
	if err != nil {
		slog.Error("a check of the outbox failed", "message_id", check.MessageID, "error", err)
		verdict = Verdict{Decision: Unknown, Reason: "the check failed"}
	}
	verdict.MessageID = check.MessageID
	if reason := []rune(verdict.Reason); len(reason) > reasonCharacters {
		verdict.Reason = string(reason[:reasonCharacters])
	}
	return verdict
}

func (e *endpoint) decided(ctx context.Context, check Check) (verdict Verdict, err error) {
	defer func() {
		if failed := recover(); failed != nil {
			err = fmt.Errorf("panic: %v", failed)
		}
	}()
	return e.decide(ctx, check)
}

func reply(w http.ResponseWriter, status int, body any) {
	if title, isProblem := body.(string); isProblem {
		body = map[string]any{"status": status, "title": title}
	}
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
