package main

import (
	"context"
	"fmt"
	"os"

	"example.com/outbox/client"
)

func main() {
	messages, err := client.NewClientWithResponses(os.Getenv("OUTBOX_API_URL"))
	check(err)
	topic, value, wait := os.Getenv("TOPIC"), "invoice", "wait=30"
	request := client.PrepareRequest{ProducerGroup: os.Getenv("PRODUCER_GROUP"), Topic: &topic, Value: &value}
	ctx := context.Background()
	prepared, err := messages.PrepareHalfMessageWithResponse(ctx, nil, request)
	check(err)
	id := prepared.JSON201.MessageId
	end, prefer := client.EndRequest{Decision: client.DECISIONCOMMIT}, client.EndHalfMessageParams{Prefer: &wait}
	_, err = messages.EndHalfMessageWithResponse(ctx, id, &prefer, end)
	check(err)
	got, err := messages.GetHalfMessageWithResponse(ctx, id, nil)
	check(err)
	fmt.Println(id, got.JSON200.State, got.JSON200.Publication.Offset)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
