package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"time"
)

const (
	batchMaxMessages = 1000
	batchMaxBytes    = 7 << 20 // the service accepts 8 MiB
	// requestsUnderWay: with one, the next batch starts only after the answer to the last was read; more make smaller
	// batches, so that each message costs more.
	requestsUnderWay = 2

	lingerAtMost  = 5 * time.Millisecond
	lingerForgets = 100 * time.Millisecond
	lingerLooks   = 100 * time.Microsecond
)

// linger counts callers that were answered together: they come again together, so a request waits a moment for them. One
// that was answered alone expects no other.
type linger struct {
	mutex    sync.Mutex
	expected int
	pause    time.Duration
	answered time.Time
}

func (l *linger) came() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.expected = max(0, l.expected-1)
	if time.Since(l.answered) > lingerForgets {
		l.expected = 0
	}
}

func (l *linger) answer(callers int, began time.Time) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.answered = time.Now()
	l.pause = min(l.answered.Sub(began)/5, lingerAtMost)
	if callers > 1 {
		l.expected += callers
	}
}

// wait waits until the expected callers have come, or the pause is over.
func (l *linger) wait() {
	for began := time.Now(); ; time.Sleep(lingerLooks) {
		l.mutex.Lock()
		over := l.expected == 0 || time.Since(began) > l.pause
		if over {
			l.expected = 0
		}
		l.mutex.Unlock()
		if over {
			return
		}
	}
}

// item is what a call sends: as a request of its own, or as a part of a batch.
type item struct {
	path           string
	alone, batched []byte
	messages       int
	answer         chan answer
}

// queue joins calls of one operation. While requests are under way, further calls wait and travel together.
type queue struct {
	path     string
	post     func(path string, body []byte) answer
	linger   *linger
	mutex    sync.Mutex
	waiting  []item
	underWay int
}

// share sends an item, alone or with others, and returns its own answer.
func (q *queue) share(ctx context.Context, one item) answer {
	one.answer = make(chan answer, 1)
	q.linger.came()
	q.mutex.Lock()
	q.waiting = append(q.waiting, one)
	if q.underWay < requestsUnderWay {
		q.underWay++
		go q.run()
	}
	q.mutex.Unlock()
	select {
	case found := <-one.answer:
		return found
	case <-ctx.Done():
		return answer{err: ctx.Err()}
	}
}

// run sends requests until nobody waits.
func (q *queue) run() {
	for {
		runtime.Gosched() // those who can go on now add their calls too
		q.linger.wait()
		items := q.take()
		if len(items) == 0 {
			return
		}
		began := time.Now()
		answers := q.exchange(items)
		q.linger.answer(len(items), began)
		for place, each := range items {
			each.answer <- answers[place]
		}
	}
}

// take returns the items of the next request; without any the request is no longer under way.
func (q *queue) take() []item {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	count, messages, size := 0, 0, 0
	for _, each := range q.waiting {
		size += len(each.batched) + 1
		messages += each.messages
		if count > 0 && (messages > batchMaxMessages || size > batchMaxBytes) {
			break
		}
		count++
	}
	if count == 0 {
		q.underWay--
	}
	items := q.waiting[:count]
	q.waiting = q.waiting[count:]
	return items
}

func (q *queue) exchange(items []item) []answer {
	if len(items) == 1 {
		return []answer{q.post(items[0].path, items[0].alone)}
	}
	bodies := make([][]byte, len(items))
	for place, each := range items {
		bodies[place] = each.batched
	}
	body := append(append([]byte(`{"items":[`), bytes.Join(bodies, []byte(","))...), "]}"...)
	found := q.post(q.path, body)
	answers := answersOf(found, len(items))
	switch found.status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity, http.StatusTooManyRequests:
		for place, each := range items { // one of them, or their number, may have caused it
			answers[place] = q.post(each.path, each.alone)
		}
	}
	return answers
}

// answersOf returns each item's own answer; what is no answer to a batch is answered to all of them alike.
func answersOf(found answer, count int) []answer {
	var batch struct {
		Items []struct {
			Status          int
			Replayed        bool
			Result, Problem json.RawMessage
		}
	}
	isBatch := found.err == nil && found.status == http.StatusMultiStatus
	if isBatch && (json.Unmarshal(found.body, &batch) != nil || len(batch.Items) != count) {
		isBatch, found = false, answer{err: errors.New("a batch without an answer for each item")}
	}
	answers := make([]answer, count)
	for place := range answers {
		answers[place] = found
		if isBatch {
			each := batch.Items[place]
			body := append(each.Result, each.Problem...) // there is one of the two
			answers[place] = answer{each.Status, body, found.retryAfter, each.Replayed, nil}
		}
	}
	return answers
}
