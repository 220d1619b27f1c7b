"""Each prepare and each end has a span in the caller's trace; the prepare's context is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from outbox.postgres.sessions.connections import Pool
from outbox.telemetry.spans import Spans
from tests.fixtures_new_rows import NEW_HALVES
from tests.fixtures_spans import (
    CALLER,
    NOT_RECORDED,
    RECORDED,
    TRACE,
    KeptSpans,
    context_of,
    id_of,
    linked_ids,
    trace_of,
)
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import (
    HALVES,
    TOPIC,
    Service,
    prepare_body,
    running,
    settings_for,
)

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("way_in")]
STORED = f"SELECT traceparent FROM outbox.half_message WHERE {NEW_HALVES} ORDER BY half_id"
WITH_TRACE = {"traceparent": RECORDED}


@pytest.fixture
def kept() -> KeptSpans:
    return KeptSpans()


@pytest.fixture
async def service(database_url: str, kept: KeptSpans) -> AsyncIterator[Service]:
    async with running(settings_for(database_url), spans=kept.spans) as traced:
        assert (await traced.put_group()).status_code == 201
        yield traced


async def test_a_prepare_continues_its_caller_and_its_context_is_stored(
    service: Service, kept: KeptSpans, pool: Pool
) -> None:
    answer = await service.client.post(HALVES, json=prepare_body(), headers=WITH_TRACE)
    span = kept.take()
    assert (span.name, span.kind) == (f"prepare {TOPIC}", SpanKind.SERVER)
    assert (trace_of(span), span.parent and f"{span.parent.span_id:016x}") == (TRACE, CALLER)
    assert dict(span.attributes or {}) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "prepare",
        "messaging.operation.type": "create",
        "messaging.destination.name": TOPIC,
        "messaging.message.id": answer.json()["message_id"],
        "outbox.producer_group": "billing",
    }
    assert await select(pool, STORED) == [(context_of(span),)]


async def test_without_a_context_of_the_caller_a_trace_begins_at_the_prepare(
    service: Service, kept: KeptSpans, pool: Pool
) -> None:
    await service.prepared_id()
    span = kept.take()
    assert await select(pool, STORED) == [(context_of(span),)]


async def test_a_trace_that_is_not_recorded_keeps_the_context_of_the_caller(
    service: Service, kept: KeptSpans, pool: Pool
) -> None:
    headers = {"traceparent": NOT_RECORDED}
    await service.client.post(HALVES, json=prepare_body(), headers=headers)
    assert kept.ended() == []
    assert await select(pool, STORED) == [(NOT_RECORDED,)]


async def test_each_item_of_a_batch_has_its_span_and_a_refused_one_its_error(
    service: Service, kept: KeptSpans
) -> None:
    items = [
        prepare_body(),
        prepare_body(producer_group="nobody"),
        prepare_body(topic="not a topic"),
        prepare_body(),
    ]
    answer = await service.client.post(f"{HALVES}/batch", json={"items": items}, headers=WITH_TRACE)
    assert [item["status"] for item in answer.json()["items"]] == [201, 404, 422, 201]
    spans = kept.ended()
    assert [span.name for span in spans] == [f"prepare {TOPIC}"] * 3
    assert {trace_of(span) for span in spans} == {TRACE}
    errors = [(span.attributes or {}).get("error.type") for span in spans]
    assert errors == [None, "unknown-group", None]
    assert spans[1].status.status_code is StatusCode.ERROR


async def test_an_end_continues_its_own_caller_and_links_to_the_prepare(
    service: Service, kept: KeptSpans
) -> None:
    message_id = await service.prepared_id()
    prepare = kept.take()
    answer = await service.end(message_id, "COMMIT", headers=WITH_TRACE)
    assert answer.status_code == 200
    span = kept.take()
    assert (span.name, span.kind) == (f"settle {TOPIC}", SpanKind.SERVER)
    assert (trace_of(span), linked_ids(span)) == (TRACE, [id_of(prepare)])
    assert dict(span.attributes or {}) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "settle",
        "messaging.operation.type": "settle",
        "messaging.destination.name": TOPIC,
        "messaging.message.id": message_id,
        "outbox.decision": "COMMIT",
    }


async def test_ends_that_are_refused_name_why(service: Service, kept: KeptSpans) -> None:
    message_id = await service.prepared_id()
    await service.end(message_id, "COMMIT")
    other = await service.prepared_id()
    unknown = message_id[:-4] + ("0000" if message_id[-4:] != "0000" else "1111")
    before = len(kept.ended())
    items = [
        {"message_id": message_id, "decision": "ROLLBACK"},
        {"message_id": unknown, "decision": "COMMIT"},
        {"message_id": other, "decision": "ROLLBACK"},
    ]
    await service.client.post(f"{HALVES}/end-batch", json={"items": items})
    spans = kept.ended()[before:]
    assert [(span.attributes or {}).get("error.type") for span in spans] == [
        "already-ended",
        "message-not-found",
        None,
    ]
    assert spans[0].name == spans[2].name == f"settle {TOPIC}"


async def test_a_store_that_is_away_fails_the_span_of_each_message(kept: KeptSpans) -> None:
    settings = settings_for("postgresql://nobody@127.0.0.1:1/none")
    async with running(settings, spans=kept.spans) as service:
        assert (await service.prepare()).status_code == 503
    assert (kept.take().attributes or {})["error.type"] == "database-unavailable"


async def test_spans_that_are_never_recorded_read_no_origin(
    database_url: str, kept: KeptSpans, pool: Pool
) -> None:
    silent = KeptSpans(ALWAYS_OFF)
    async with running(settings_for(database_url), spans=silent.spans) as service:
        await service.put_group()
        message_id = await service.prepared_id()
        assert (await service.end(message_id, "COMMIT")).status_code == 200
    assert silent.ended() == []
    assert await select(pool, STORED) == [(None,)]


async def test_no_span_shows_a_key_a_value_or_a_header_of_the_caller(
    service: Service, kept: KeptSpans
) -> None:
    canary = "canary-31c"
    message_id = await service.prepared_id(
        key=canary, value=canary, headers={"h": canary}, transaction_id=canary, tags=[canary]
    )
    await service.end(message_id, "COMMIT", reason=canary)
    assert len(kept.ended()) == 2
    assert canary not in "".join(span.to_json() for span in kept.ended())
    assert isinstance(kept.spans, Spans)
