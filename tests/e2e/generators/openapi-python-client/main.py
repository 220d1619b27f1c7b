"""Sends a message with the client that openapi-python-client has made."""

from __future__ import annotations

import os

from generated import Client
from generated.api.half_messages import end_half_message, get_half_message, prepare_half_message
from generated.models import Decision, EndRequest, PrepareRequest

api = Client(base_url=os.environ["OUTBOX_API_URL"])
request = PrepareRequest(
    producer_group=os.environ["PRODUCER_GROUP"], topic=os.environ["TOPIC"], value="invoice"
)
identity = prepare_half_message.sync(client=api, body=request).message_id
decided = EndRequest(decision=Decision.DECISION_COMMIT)
end_half_message.sync(identity, client=api, body=decided, prefer="wait=30")
got = get_half_message.sync(identity, client=api)
print(identity, got.state.value, got.publication.offset)
