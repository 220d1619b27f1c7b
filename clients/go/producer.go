// Package outbox sends messages that are in Kafka if, and only if, a local transaction committed.
//
// A Producer prepares a message, runs the local transaction, and ends the message. A Barrier stores with the local
// transaction that it committed, and an endpoint answers the checks of the service from it.
package outbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"
)

var (
	// ErrNoAnswer: no answer came in time. After a prepare run no local transaction.
	ErrNoAnswer = errors.New("the outbox does not answer")
	// ErrRefused: the outbox, or something before it, has refused the request.
	ErrRefused = errors.New("the request is refused")
	// ErrCommitted: this transaction id is committed already. Nothing is left to do: read your own rows.
	ErrCommitted = errors.New("this transaction id is committed already")
	// ErrRolledBack: the message is rolled back for ever.
	ErrRolledBack = errors.New("the message is rolled back")
	// ErrNotEnded: the local transaction is committed, but the end of its message is not confirmed. Do not run the local
	// transaction again. A check settles the message, unless this is ErrRolledBack too: an operator has rolled it back.
	ErrNotEnded = errors.New("the local transaction is committed, but its message is not ended")
	// ErrFenced: a check was answered ROLLBACK before the commit, or another call has committed. Roll back.
	ErrFenced = errors.New("the barrier has a row for this message: roll back")
)

// Decision is what became of a local transaction. Unknown decides nothing: the service asks again.
type Decision string

// The decisions of ends and of checks.
const (
	Commit   Decision = "COMMIT"
	Rollback Decision = "ROLLBACK"
	Unknown  Decision = "UNKNOWN"
)

// Message becomes a record. A nil Key is no key, a nil Value a tombstone. Without TransactionID it gets a random one.
type Message struct {
	tombstone
	Topic       string             `json:"topic"`
	Key         []byte             `json:"key_base64,omitzero"`
	Value       []byte             `json:"value_base64,omitzero"`
	Headers     map[string]*Header `json:"headers,omitempty"`
	ContentType string             `json:"content_type,omitempty"`
	Partition   *int32             `json:"partition,omitempty"`
	Tags        []string           `json:"tags,omitempty"`

	TransactionID        string `json:"-"`
	CheckImmunitySeconds int    `json:"-"`
	// Followers have the decision, the TransactionID and the CheckImmunitySeconds of this message.
	Followers []Message `json:"-"`
}

// Header is the value of a record's header; a nil pointer is a null.
type Header struct {
	Value []byte `json:"base64"`
}

// tombstone counts as absent beside value_base64.
type tombstone struct {
	Null *string `json:"value"`
}

// Producer prepares and ends messages of one group. Share one between all goroutines: calls at the same time travel
// together, and a single call is sent at once.
type Producer struct {
	URL, Group string
	// APIKey is needed where the service asks for keys.
	APIKey string
	// Timeout of each Prepare and each End with all its attempts; 10 s if zero.
	Timeout time.Duration
	// Transport replaces http.DefaultTransport, for a certificate of your own.
	Transport http.RoundTripper

	prepares, ends queue
}

// Send prepares a message, runs the local transaction, and ends the message with COMMIT.
//
// If local returns an error, Send returns it and ends nothing: a check finds out what became of the transaction.
// ErrNotEnded comes after the local transaction has committed; every other error before. If an earlier call with this
// transaction id has committed, the error is ErrCommitted and local does not run: read your own rows. If earlier
// messages were rolled back, Send prepares again as ID/2, then as ID/3.
func (p *Producer) Send(ctx context.Context, message Message, local func(messageID string) error) error {
	first := message.TransactionID
	messageID, err := p.Prepare(ctx, message)
	for number := 2; number <= 3 && first != "" && errors.Is(err, ErrRolledBack); number++ {
		message.TransactionID = fmt.Sprintf("%s/%d", first, number)
		messageID, err = p.Prepare(ctx, message)
	}
	if err != nil {
		return err
	}
	if err := local(messageID); err != nil {
		return err
	}
	if err := p.End(ctx, messageID, Commit); err != nil {
		return fmt.Errorf("%w: message %s: %w", ErrNotEnded, messageID, err)
	}
	return nil
}

// Prepare stores a message; it is durable when this returns. After an error run no local transaction.
func (p *Producer) Prepare(ctx context.Context, message Message) (messageID string, err error) {
	body := struct {
		Group                string `json:"producer_group"`
		TransactionID        string `json:"transaction_id"`
		CheckImmunitySeconds int    `json:"check_immunity_seconds,omitempty"`
		*Message
		Messages []Message `json:"messages,omitempty"`
	}{p.Group, cmp.Or(message.TransactionID, rand.Text()), message.CheckImmunitySeconds, &message, nil}
	if len(message.Followers) > 0 {
		body.Message, body.Messages = nil, append([]Message{message}, message.Followers...)
	}
	return p.call(ctx, &p.prepares, "/v1/half-messages/batch", body, 1+len(message.Followers))
}

type verdict struct {
	MessageID string   `json:"message_id"`
	Decision  Decision `json:"decision"`
}

// End decides a message. It may be repeated; the first decision stands.
func (p *Producer) End(ctx context.Context, messageID string, decision Decision) error {
	_, err := p.call(ctx, &p.ends, "/v1/half-messages/end-batch", verdict{messageID, decision}, 1)
	return err
}
