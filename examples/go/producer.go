package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	attempts       = 5
	prepares       = 3
	answerMaxBytes = 1 << 20
)

var errNoAnswer = errors.New("the outbox does not answer")

// ErrCommitted tells that the transaction id is committed: nothing is left to do, read your own row.
var ErrCommitted = errors.New("this transaction id is committed already")

// Outbox prepares and ends messages over HTTP. Every request may be repeated: the service recognises it.
type Outbox struct {
	url, key string
	http     http.Client
}

// Message is the body of a prepare.
type Message struct {
	ProducerGroup string `json:"producer_group"`
	Topic         string `json:"topic"`
	Key           string `json:"key"`
	Value         string `json:"value"`
	TransactionID string `json:"transaction_id"`
	// Headers of the record: a string, null, or {"base64": …} for bytes.
	Headers map[string]any `json:"headers,omitempty"`
}

// NewOutbox takes the address of the service, and an API key where keys are needed.
func NewOutbox(url, key string) *Outbox {
	return &Outbox{url: url, key: key, http: http.Client{Timeout: 10 * time.Second, CheckRedirect: noRedirect}}
}

// noRedirect makes a redirect an error: the client would repeat a POST as a GET, which is answered with 200.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// EndError tells that the local transaction is committed, but not what became of the end: do not run the local
// transaction again. If the service did not answer, a check settles the message. If it answered "already-ended",
// somebody else has rolled the message back.
type EndError struct {
	MessageID string
	Err       error
}

func (e *EndError) Error() string {
	return fmt.Sprintf("the local transaction is committed, but not the end of message %s: %v", e.MessageID, e.Err)
}

// Unwrap returns the error of the end.
func (e *EndError) Unwrap() error { return e.Err }

// refusal is an answer that a repeated request would get again.
type refusal struct {
	status  int
	problem []byte
}

func (r *refusal) Error() string { return fmt.Sprintf("%d: %s", r.status, r.problem) }

// winner returns the decision of a message that is ended, else "".
func winner(err error) string {
	var refused *refusal
	var problem struct {
		Winner string `json:"winning_decision"`
	}
	if errors.As(err, &refused) && refused.status == http.StatusConflict {
		_ = json.Unmarshal(refused.problem, &problem) // what is no problem has no winner
	}
	return problem.Winner
}

// Send prepares a message, runs the local transaction, and ends the message with COMMIT. If the local
// transaction fails, nothing is ended: the check finds out what became of it. If the end fails, the error is
// an *EndError; every other error comes from before the local commit, or from the local transaction itself.
// ErrCommitted comes instead of a second run of a local transaction that is committed.
func (o *Outbox) Send(ctx context.Context, message Message, local func(messageID string) error) ([]byte, error) {
	answer, err := o.prepare(ctx, message)
	if err != nil {
		return nil, err
	}
	var prepared struct {
		MessageID string `json:"message_id"`
	}
	if err := json.Unmarshal(answer, &prepared); err != nil {
		return nil, err
	}
	if err := local(prepared.MessageID); err != nil {
		return nil, err
	}
	ended, err := o.End(ctx, prepared.MessageID, "COMMIT")
	if err != nil {
		return nil, &EndError{prepared.MessageID, err}
	}
	return ended, nil
}

// prepare stores a half message. If one with this transaction id is rolled back, nothing of it is committed and
// nothing can be any more: the next one has the transaction id ID/2, then ID/3.
func (o *Outbox) prepare(ctx context.Context, message Message) ([]byte, error) {
	first := message.TransactionID
	for number := 2; ; number++ {
		answer, err := o.post(ctx, "/v1/half-messages", message, http.StatusCreated)
		if winner(err) == "COMMIT" {
			return nil, ErrCommitted
		}
		if winner(err) != "ROLLBACK" || number > prepares {
			return answer, err
		}
		message.TransactionID = fmt.Sprintf("%s/%d", first, number)
	}
}

// End ends a message; the answer waits up to 5 s for Kafka. If no answer comes, a check settles it.
func (o *Outbox) End(ctx context.Context, messageID, decision string) ([]byte, error) {
	return o.post(ctx, "/v1/half-messages/"+messageID+"/end", map[string]string{"decision": decision}, http.StatusOK)
}

// post repeats the same request while its result is uncertain; every other status than done is an error.
func (o *Outbox) post(ctx context.Context, path string, body any, done int) ([]byte, error) {
	sent, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	last := errNoAnswer
	for attempt := range attempts {
		status, wait, answer, err := o.once(ctx, path, sent)
		switch {
		case err != nil:
			last = fmt.Errorf("%w: %w", errNoAnswer, err)
		case status == done:
			return answer, nil
		case !isUncertain(status):
			return nil, &refusal{status, answer}
		default:
			last = fmt.Errorf("%d: %s", status, answer)
		}
		pause(ctx, max(wait, rand.N(200*time.Millisecond<<attempt)))
	}
	return nil, last
}

func (o *Outbox) once(ctx context.Context, path string, body []byte) (int, time.Duration, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, 0, nil, err
	}
	request.Header.Set("content-type", "application/json")
	request.Header.Set("prefer", "wait=5") // a prepare ignores it
	if o.key != "" {
		request.Header.Set("authorization", "Bearer "+o.key)
	}
	response, err := o.http.Do(request)
	if err != nil {
		return 0, 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, answerMaxBytes))
	seconds, _ := strconv.Atoi(response.Header.Get("retry-after"))
	return response.StatusCode, time.Duration(seconds) * time.Second, answer, err
}

func isUncertain(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

func pause(ctx context.Context, wait time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
}
