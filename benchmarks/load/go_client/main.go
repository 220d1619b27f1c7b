// Sends transactions with the Go client from many goroutines: reads lines "goroutines messages", answers each with the
// seconds that it took. The local transaction does nothing. Arguments: URL, group, topic, bytes of a value.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"example.com/outbox"
)

func main() {
	producer := &outbox.Producer{URL: os.Args[1], Group: os.Args[2], Timeout: time.Minute}
	size, err := strconv.Atoi(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	message := outbox.Message{Topic: os.Args[3], Value: bytes.Repeat([]byte("x"), size)}
	var goroutines, messages int64
	for {
		if _, err := fmt.Scan(&goroutines, &messages); err != nil {
			return
		}
		began := time.Now()
		var next atomic.Int64
		var sending sync.WaitGroup
		for range goroutines {
			sending.Go(func() {
				for n := next.Add(1); n <= messages; n = next.Add(1) {
					send(producer, message, n)
				}
			})
		}
		sending.Wait()
		fmt.Println(time.Since(began).Seconds())
	}
}

func send(producer *outbox.Producer, message outbox.Message, n int64) {
	message.Key = fmt.Appendf(nil, "key-%d", n%1000)
	commit := func(string) error { return nil }
	if err := producer.Send(context.Background(), message, commit); err != nil {
		log.Fatal(err)
	}
}
