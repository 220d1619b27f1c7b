package outbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	requestMaxMessages = 1000
	requestMaxBytes    = 7 << 20 // the service accepts 8 MiB
	answerMaxBytes     = 8 << 20
	yields             = 3 // an idle processor may take up a goroutine that yields at once
)

// item is a part of a request, and where its own answer goes.
type item struct {
	body     []byte
	messages int
	answer   chan answer
}

// answer is that to an item, or to a request with Items; err is in the place of one.
type answer struct {
	Status  int
	Result  verdict
	Problem struct {
		Code, Detail    string
		WinningDecision Decision `json:"winning_decision"`
	}
	Items      []answer
	retryAfter time.Duration
	err        error
}

// queue joins calls of one path. While a request is under way, further calls wait and travel together: two requests at a
// time would have half as many calls each, and so cost more.
type queue struct {
	mutex    sync.Mutex
	waiting  []item
	underWay bool
}

// call sends an item until its answer is certain or the time is over; it returns the message id of a success.
func (p *Producer) call(ctx context.Context, by *queue, path string, body any, messages int) (string, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout())
	defer cancel()
	deadline, _ := ctx.Deadline()
	for longest := 50 * time.Millisecond; ; longest = min(2*longest, 2*time.Second) {
		found := p.share(ctx, by, path, item{text, messages, make(chan answer, 1)})
		if found.Result.MessageID != "" {
			return found.Result.MessageID, nil
		}
		pause := max(rand.N(longest), found.retryAfter)
		// The table of docs/rest.md.
		passing := []int{http.StatusRequestTimeout, http.StatusTooManyRequests}
		isUncertain := found.err != nil || found.Status >= 500 || slices.Contains(passing, found.Status)
		if !isUncertain || ctx.Err() != nil || time.Until(deadline) < pause {
			return "", found.failure()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (p *Producer) timeout() time.Duration { return cmp.Or(p.Timeout, 10*time.Second) }

// share sends an item, alone or with others, and returns its own answer.
func (p *Producer) share(ctx context.Context, by *queue, path string, one item) answer {
	by.mutex.Lock()
	by.waiting = append(by.waiting, one)
	if !by.underWay {
		by.underWay = true
		go func() {
			for items := by.take(); len(items) > 0; items = by.take() {
				p.exchange(path, items)
			}
		}()
	}
	by.mutex.Unlock()
	select {
	case found := <-one.answer:
		return found
	case <-ctx.Done():
		return answer{err: ctx.Err()}
	}
}

// take returns the items of the next request; without any the request is no longer under way.
func (q *queue) take() []item {
	for range yields {
		runtime.Gosched() // those who can go on now add their items too
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	count, messages, size := 0, 0, 0
	for _, each := range q.waiting {
		messages += each.messages
		size += len(each.body) + 1
		if count > 0 && (messages > requestMaxMessages || size > requestMaxBytes) {
			break
		}
		count++
	}
	q.underWay = count > 0
	items := q.waiting[:count]
	q.waiting = q.waiting[count:]
	return items
}

// exchange makes one attempt, and gives each item its answer. If the request is refused as a whole, one item or their
// number may be the cause: then each is sent by itself.
func (p *Producer) exchange(path string, items []item) {
	var bodies [][]byte
	for _, each := range items {
		bodies = append(bodies, each.body)
	}
	found := p.post(path, slices.Concat([]byte(`{"items":[`), bytes.Join(bodies, []byte(",")), []byte("]}")))
	for place, each := range items {
		switch {
		case len(found.Items) == len(items):
			each.answer <- found.Items[place]
		case found.Status/100 == 4 && len(items) > 1:
			p.exchange(path, items[place:place+1])
		default:
			each.answer <- found
		}
	}
}

// post takes half the time at most: a dead connection does not use all of it. It follows no redirect: a redirected POST
// would become a GET, which is answered with 200.
func (p *Producer) post(path string, body []byte) answer {
	ctx, cancel := context.WithTimeout(context.Background(), p.timeout()/2)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+path, bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	request.Header.Set("content-type", "application/json")
	if p.APIKey != "" {
		request.Header.Set("authorization", "Bearer "+p.APIKey)
	}
	response, err := cmp.Or(p.Transport, http.DefaultTransport).RoundTrip(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, answerMaxBytes))
	seconds, _ := strconv.Atoi(response.Header.Get("retry-after"))
	found := answer{Status: response.StatusCode, retryAfter: time.Duration(seconds) * time.Second, err: err}
	if found.Status == http.StatusMultiStatus {
		_ = json.Unmarshal(text, &found)
	} else {
		_ = json.Unmarshal(text, &found.Problem) // a proxy's has no code
	}
	return found
}

func (a answer) failure() error {
	switch {
	case a.err != nil:
		return fmt.Errorf("%w: %w", ErrNoAnswer, a.err)
	case a.Problem.WinningDecision == Commit:
		return ErrCommitted
	case a.Problem.WinningDecision == Rollback:
		return ErrRolledBack
	}
	return fmt.Errorf("%w: %d %s: %s", ErrRefused, a.Status, a.Problem.Code, a.Problem.Detail)
}
