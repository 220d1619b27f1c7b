"""Each record has a span of its own with a link to its prepare; its header names the prepare."""

from __future__ import annotations

import pytest
from opentelemetry.trace import SpanKind

from checker.relay_wiring import RelayBuilder
from outbox.settings.environment import load_settings
from tests.fixtures_records import header_in
from tests.fixtures_spans import CALLER, NOT_RECORDED, RECORDED, KeptSpans, linked_ids
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]


def drain_traced(world: RelayWorld, kept: KeptSpans) -> None:
    """Publish everything with a relay that records spans."""
    settings = load_settings(world.checker_environment)
    builder = RelayBuilder(settings, world.metrics, world.progress_topic, spans=kept.spans)
    relay = builder.open(SHARD)
    world.opened.append(relay)
    drain(relay)


def test_the_span_of_a_record_names_its_place_and_links_to_its_prepare(world: RelayWorld) -> None:
    kept = KeptSpans()
    world.commit(world.message(b"a", traceparent=RECORDED), world.message(b"b"))
    drain_traced(world, kept)
    traced, _ = sorted(world.records(2), key=lambda record: record.value or b"")
    headers = dict(traced.headers)
    assert headers["traceparent"] == RECORDED.encode()
    span = kept.take()
    assert (span.name, span.kind) == (f"send {world.topic}", SpanKind.PRODUCER)
    assert linked_ids(span) == [CALLER]
    attributes = dict(span.attributes or {})
    assert attributes.pop("messaging.destination.partition.id").isdigit()  # type: ignore[union-attr]
    assert attributes.pop("messaging.kafka.offset") == 0
    assert attributes == {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": world.topic,
        "messaging.message.id": header_in(traced, "outbox_message_id"),
        "outbox.producer_group": header_in(traced, "outbox_producer_group"),
    }
    assert (span.end_time or 0) > (span.start_time or 0) > 0


@pytest.mark.parametrize("given", [NOT_RECORDED, "any text of the SQL mode", None])
def test_a_record_whose_prepare_was_not_recorded_has_no_span(
    world: RelayWorld, given: str | None
) -> None:
    kept = KeptSpans()
    world.commit(world.message(b"a", traceparent=given))
    drain_traced(world, kept)
    assert len(world.records(1)) == 1
    assert kept.ended() == []
