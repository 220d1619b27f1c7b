package main

import (
	"context"
	"fmt"
	"os"

	outbox "github.com/GIT_USER_ID/GIT_REPO_ID"
)

func main() {
	configuration := outbox.NewConfiguration()
	configuration.Servers[0].URL = os.Getenv("OUTBOX_API_URL")
	messages := outbox.NewAPIClient(configuration).HalfMessagesAPI
	request := outbox.NewPrepareRequest(os.Getenv("PRODUCER_GROUP"))
	request.SetTopic(os.Getenv("TOPIC"))
	request.SetValue("invoice")
	ctx := context.Background()
	prepared, _, err := messages.PrepareHalfMessage(ctx).PrepareRequest(*request).Execute()
	check(err)
	id, end := prepared.MessageId, outbox.NewEndRequest(outbox.DECISION_COMMIT)
	_, _, err = messages.EndHalfMessage(ctx, id).EndRequest(*end).Prefer("wait=30").Execute()
	check(err)
	got, _, err := messages.GetHalfMessage(ctx, id).Execute()
	check(err)
	fmt.Println(id, got.State, got.Publication.Get().Offset)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
