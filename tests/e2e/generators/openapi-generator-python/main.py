"""Sends a message with the client that openapi-generator has made."""

from __future__ import annotations

import os

from openapi_client import (
    ApiClient,
    Configuration,
    Decision,
    EndRequest,
    HalfMessagesApi,
    PrepareRequest,
)

messages = HalfMessagesApi(ApiClient(Configuration(host=os.environ["OUTBOX_API_URL"])))
request = PrepareRequest(
    producer_group=os.environ["PRODUCER_GROUP"], topic=os.environ["TOPIC"], value="invoice"
)
identity = messages.prepare_half_message(request).message_id
messages.end_half_message(identity, EndRequest(decision=Decision.DECISION_COMMIT), prefer="wait=30")
got = messages.get_half_message(identity)
print(identity, got.state.value, got.publication.offset)
