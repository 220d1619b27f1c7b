"""The messages of docs/clients.md for a schema registry and for CloudEvents, as Kafka has them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from google.protobuf.struct_pb2 import Struct  # type: ignore[import-untyped]

from outbox_client import LocalTransactionState, TransactionProducer
from tests.e2e.fixtures_service import Service
from tests.fixtures_kafka import committed_records
from tests.fixtures_paths import PROJECT

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka]

PAGE = (PROJECT / "docs" / "clients.md").read_text("utf-8")
(BLOCK,) = re.findall(r"```python\n(import json\n.*?)```", PAGE, re.DOTALL)
NOWHERE = "http://127.0.0.1:65533/check"


def test_a_schema_id_and_a_cloud_event_reach_kafka_in_their_formats(service: Service) -> None:
    page: dict[str, Any] = {}
    exec(BLOCK, page)
    schema, event = uuid4(), Struct()
    event.update({"invoice": 7731})
    facts, topic = service.facts(), service.new_topic()
    with TransactionProducer(facts["api_url"], service.group(NOWHERE)) as producer:
        for message in (page["with_schema"](event, schema), page["cloud_event"](7731)):
            sent = replace(message, topic=topic, partition=0)
            producer.send_in_transaction(sent, lambda _: LocalTransactionState.COMMIT)
    with_schema, cloud_event = committed_records(facts["kafka_bootstrap_servers"], topic, 2)
    assert Struct.FromString(with_schema.value or b"") == event
    assert with_schema.headers[-1] == ("__value_schema_id", b"\x01" + schema.bytes + b"\x00")
    assert cloud_event.value == b'{"invoice": 7731}'
    assert cloud_event.headers[-5:] == (
        ("content-type", b"application/json"),
        ("ce_specversion", b"1.0"),
        ("ce_id", b"invoice-7731"),
        ("ce_source", b"/billing"),
        ("ce_type", b"com.example.invoice.issued"),
    )
