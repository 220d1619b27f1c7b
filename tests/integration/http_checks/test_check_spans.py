"""A check call is a trace of its own, linked to its prepares, that the endpoint continues."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from outbox.checks.check_round import Answer, Question
from outbox.clock import SystemClock
from outbox.http_checks.endpoint import HttpCheckEndpoint
from outbox.http_checks.guarded_connector import GuardedResolver
from tests.fixtures_spans import CALLER, NOT_RECORDED, RECORDED, KeptSpans, context_of, linked_ids
from tests.integration.checker.fixtures_checks import LOOPBACK_ALLOWED
from tests.integration.checker.fixtures_producer import Producer, says, status
from tests.integration.http_checks.fixtures_questions import group_at
from tests.unit.checker.checks.fixtures_queue_rows import make_half


def asked(traceparent: str | None, half_id: int = 1 << 15) -> Question:
    """Return a question about a half whose prepare had this trace context."""
    return Question(half=make_half(half_id, traceparent=traceparent), round=1, attempt=1)


async def ask(kept: KeptSpans, url: str, *questions: Question, **fields: Any) -> list[Answer]:
    resolver = GuardedResolver(LOOPBACK_ALLOWED)
    async with HttpCheckEndpoint(resolver, spans=kept.spans) as endpoint:
        group = group_at(url, **fields)
        return list(await endpoint.ask(group, questions, SystemClock().now()))


async def test_the_endpoint_gets_the_context_of_the_call_s_span() -> None:
    kept, checked = KeptSpans(), asked(RECORDED)
    async with Producer(says("COMMIT")) as producer:
        await ask(kept, f"{producer.url}?token=canary-77", checked)
        port = int(producer.url.rsplit(":", 1)[1].split("/")[0])
    span = kept.take()
    assert producer.headers[0]["traceparent"] == context_of(span)
    assert (span.name, span.kind) == (f"check {group_at('').name}", SpanKind.CLIENT)
    assert linked_ids(span) == [CALLER]
    attributes = dict(span.attributes or {})
    assert attributes.pop("outbox.check.outcomes") == ("commit",)
    content = checked.half.message.content
    assert attributes == {
        "messaging.system": "kafka",
        "messaging.operation.name": "check",
        "messaging.destination.name": content.topic,
        "messaging.message.id": str(checked.half.message_id),
        "outbox.producer_group": group_at("").name,
        "outbox.check.attempt": 1,
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "server.address": "127.0.0.1",
        "server.port": port,
    }
    assert "canary" not in span.to_json()


async def test_a_batch_is_one_span_with_a_link_to_each_prepare() -> None:
    kept = KeptSpans()
    questions = [asked(RECORDED, 1 << 15), asked(None, 2 << 15), asked(RECORDED, 3 << 15)]
    async with Producer(says("UNKNOWN")) as producer:
        await ask(kept, producer.url, *questions, batch_check=True)
    span = kept.take()
    assert linked_ids(span) == [CALLER, CALLER]
    attributes = span.attributes or {}
    assert attributes["messaging.batch.message_count"] == 3
    assert "messaging.message.id" not in attributes


@pytest.mark.parametrize(
    ("script", "error"), [(status(500), "http_error"), (says("PERHAPS"), "bad_verdict")]
)
async def test_a_call_without_a_verdict_has_failed(script: Any, error: str) -> None:
    kept = KeptSpans()
    async with Producer(script) as producer:
        await ask(kept, producer.url, asked(RECORDED))
    span = kept.take()
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == error


async def test_a_blocked_address_and_a_closed_port_have_their_own_error() -> None:
    kept = KeptSpans()
    await ask(kept, "http://169.254.169.254/check", asked(RECORDED))
    assert (kept.take().attributes or {})["error.type"] == "blocked"
    await ask(kept, "http://127.0.0.1:1/check", asked(RECORDED))
    assert (kept.take().attributes or {})["error.type"] in {"unreachable", "blocked"}


async def test_a_check_of_a_prepare_that_was_not_recorded_has_no_span() -> None:
    kept = KeptSpans()
    async with Producer(says("COMMIT")) as producer:
        (answer,) = await ask(kept, producer.url, asked(NOT_RECORDED))
    assert answer.valid
    assert kept.ended() == []
    assert not int(producer.headers[0]["traceparent"][-2:], 16) & 1
