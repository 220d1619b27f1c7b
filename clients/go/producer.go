// Package outbox sends messages that are in Kafka if, and only if, a local transaction committed.
//
// A Producer prepares a message, runs the local transaction, and ends the message. A Barrier stores with the local
// transaction that it committed, and an endpoint answers the checks of the service from it.
package outbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxPrepares is how many messages Send prepares for one transaction id, if the earlier ones are rolled back.
const maxPrepares = 3

// Config describes the service and the producer group. APIKey is needed where the service asks for keys.
type Config struct {
	URL, Group, APIKey string
	// Timeout of each Prepare and each End with all its attempts; 10 s if zero.
	Timeout time.Duration
	// Transport replaces http.DefaultTransport, for a certificate of your own.
	Transport http.RoundTripper
}

// Producer prepares and ends messages of one group. Share one between all goroutines: calls at the same time travel
// together, and a single call is sent at once.
type Producer struct {
	config         Config
	http           http.Client
	prepares, ends queue
}

// Prepared is a stored message. If it is Replayed, its local transaction may have run before.
type Prepared struct {
	MessageID     string `json:"message_id"`
	TransactionID string `json:"transaction_id"`
	Replayed      bool   `json:"-"`
}

// Ended is a decided message; its record follows.
type Ended struct {
	MessageID string   `json:"message_id"`
	State     string   `json:"state"`
	Decision  Decision `json:"decision"`
}

// NewProducer returns a producer. It opens connections as it needs them.
func NewProducer(config Config) *Producer {
	config.URL = strings.TrimSuffix(config.URL, "/")
	config.Timeout = cmp.Or(config.Timeout, 10*time.Second)
	// One attempt takes half the time at most: a dead connection does not use all of it.
	p := &Producer{config: config, http: http.Client{Transport: config.Transport, Timeout: config.Timeout / 2}}
	p.http.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a redirected POST would become a GET, which is answered with 200
	}
	together := &linger{}
	p.prepares = queue{post: p.post, path: "/v1/half-messages/batch", linger: together}
	p.ends = queue{post: p.post, path: "/v1/half-messages/end-batch", linger: together}
	return p
}

// Send prepares a message, runs the local transaction, and ends the message with COMMIT.
//
// If local returns an error, Send returns it and ends nothing: a check finds out what became of the transaction. An
// *EndError comes after the local transaction has committed; every other error before. If an earlier call with this
// transaction id has committed, the error is ErrCommitted and local does not run: read your own rows. If earlier
// messages were rolled back, Send prepares again as ID/2, then as ID/3.
func (p *Producer) Send(
	ctx context.Context, message Message, local func(context.Context, Prepared) error,
) (Ended, error) {
	first := message.TransactionID
	prepared, err := p.Prepare(ctx, message)
	for number := 2; number <= maxPrepares && first != "" && errors.Is(err, ErrRolledBack); number++ {
		message.TransactionID = fmt.Sprintf("%s/%d", first, number)
		prepared, err = p.Prepare(ctx, message)
	}
	if err != nil {
		return Ended{}, err
	}
	if err := local(ctx, prepared); err != nil {
		return Ended{}, err
	}
	ended, err := p.End(ctx, prepared.MessageID, Commit)
	if err != nil {
		return Ended{}, &EndError{prepared.MessageID, err}
	}
	return ended, nil
}

// Prepare stores a message; it is durable when this returns. After an error run no local transaction.
func (p *Producer) Prepare(ctx context.Context, message Message) (Prepared, error) {
	message.TransactionID = cmp.Or(message.TransactionID, rand.Text())
	body, err := message.body(p.config.Group)
	if err != nil {
		return Prepared{}, err
	}
	var prepared Prepared
	one := item{path: "/v1/half-messages", alone: body, batched: body, messages: 1 + len(message.Followers)}
	found, err := p.repeated(ctx, &p.prepares, one, http.StatusCreated, &prepared)
	if err == nil && prepared.TransactionID != message.TransactionID {
		return Prepared{}, &Problem{Status: found.status, Title: "the answer belongs to another message"}
	}
	prepared.Replayed = found.replayed
	return prepared, err
}

// End decides a message. It may be repeated; the first decision stands.
func (p *Producer) End(ctx context.Context, messageID string, decision Decision) (Ended, error) {
	type ending struct {
		MessageID string   `json:"message_id,omitempty"`
		Decision  Decision `json:"decision"`
	}
	one := item{path: "/v1/half-messages/" + url.PathEscape(messageID) + "/end", messages: 1}
	one.alone, _ = json.Marshal(ending{"", decision})
	one.batched, _ = json.Marshal(ending{messageID, decision})
	var ended Ended
	_, err := p.repeated(ctx, &p.ends, one, http.StatusOK, &ended)
	return ended, err
}

// repeated sends an item until its answer is certain or the time is over, and reads an answer of the wanted status.
func (p *Producer) repeated(ctx context.Context, by *queue, one item, wanted int, result any) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.Timeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	for longest := 50 * time.Millisecond; ; longest = min(2*longest, 2*time.Second) {
		found := by.share(ctx, one)
		if found.err == nil && found.status == wanted {
			return found, json.Unmarshal(found.body, result)
		}
		pause := max(mathrand.N(longest), found.retryAfter)
		if !found.uncertain() || time.Now().Add(pause).After(deadline) {
			return found, found.problem()
		}
		select {
		case <-ctx.Done():
			return found, fmt.Errorf("%w: %w", ErrNoAnswer, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// post makes one attempt.
func (p *Producer) post(path string, body []byte) answer {
	request, err := http.NewRequest(http.MethodPost, p.config.URL+path, bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	request.Header.Set("content-type", "application/json")
	if p.config.APIKey != "" {
		request.Header.Set("authorization", "Bearer "+p.config.APIKey)
	}
	response, err := p.http.Do(request)
	if err != nil {
		return answer{err: err}
	}
	return answerOf(response)
}
