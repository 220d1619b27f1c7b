package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

var (
	// ErrNoAnswer: no answer came in time. After a prepare run no local transaction.
	ErrNoAnswer = errors.New("the outbox does not answer")
	// ErrCommitted: this transaction id is committed already. Nothing is left to do: read your own rows.
	ErrCommitted = errors.New("this transaction id is committed already")
	// ErrRolledBack: the message is rolled back for ever.
	ErrRolledBack = errors.New("the message is rolled back")
	// ErrFenced: a check was answered ROLLBACK before the commit, or another call has committed. Roll back.
	ErrFenced = errors.New("the barrier has a row for this message: roll back")
)

// EndError: the local transaction is committed, but the end of its message is not confirmed. Do not run the local
// transaction again. A check settles the message, unless Err is ErrRolledBack: then an operator has rolled it back.
type EndError struct {
	MessageID string
	Err       error
}

func (e *EndError) Error() string {
	return fmt.Sprintf("the local transaction is committed, but not the end of message %s: %v", e.MessageID, e.Err)
}

// Unwrap returns the error of the end.
func (e *EndError) Unwrap() error { return e.Err }

// Problem is an answer that refuses a request. Without Code it does not come from the outbox.
type Problem struct {
	Status          int      `json:"status"`
	Code            string   `json:"code"`
	Title           string   `json:"title"`
	Detail          string   `json:"detail"`
	RequestID       string   `json:"request_id"`
	WinningDecision Decision `json:"winning_decision"`
}

func (p *Problem) Error() string {
	return fmt.Sprintf("%d %s: %s %s", p.Status, p.Code, p.Title, p.Detail)
}

// Is makes a refusal that names the winning decision ErrCommitted or ErrRolledBack.
func (p *Problem) Is(target error) bool {
	return p.WinningDecision == Commit && target == ErrCommitted ||
		p.WinningDecision == Rollback && target == ErrRolledBack
}

// answer is one answer of the service, or the error in its place.
type answer struct {
	status     int
	body       []byte
	retryAfter time.Duration
	replayed   bool
	err        error
}

func answerOf(response *http.Response) answer {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 8<<20))
	seconds, _ := strconv.Atoi(response.Header.Get("retry-after"))
	replayed := response.Header.Get("idempotency-replayed") == "true"
	return answer{response.StatusCode, body, time.Duration(seconds) * time.Second, replayed, err}
}

// uncertain returns whether the same request may be answered otherwise: the table of docs/rest.md.
func (a answer) uncertain() bool {
	return a.err != nil || a.status == http.StatusRequestTimeout || a.status == http.StatusTooManyRequests ||
		a.status >= http.StatusInternalServerError
}

func (a answer) problem() error {
	if a.err != nil {
		return fmt.Errorf("%w: %w", ErrNoAnswer, a.err)
	}
	problem := &Problem{Title: "not an answer of the outbox"}
	if a.status >= http.StatusBadRequest {
		_ = json.Unmarshal(a.body, problem) // what is no problem keeps the title
	}
	problem.Status = a.status
	return problem
}
