"""A request continues its caller's trace; a prepare stores the context of its span."""

from __future__ import annotations

import httpx2
import pytest
from opentelemetry.trace import SpanKind

from api.http.traced import traced
from outbox.postgres.sessions.connections import Pool
from tests.fixtures_spans import (
    CALLER,
    NOT_RECORDED,
    RECORDED,
    TRACE,
    KeptSpans,
    context_of,
    trace_of,
)
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import (
    HALVES,
    prepare_body,
    running,
    settings_for,
)

pytestmark = pytest.mark.postgres

STORED = "SELECT traceparent FROM outbox.half_message ORDER BY half_id"


async def test_a_prepare_continues_its_caller_and_its_context_is_stored(
    database_url: str, pool: Pool
) -> None:
    kept, canary = KeptSpans(), "canary-31c"
    async with running(settings_for(database_url), spans=kept.spans) as service:
        await service.put_group()
        transport = httpx2.ASGITransport(app=traced(service.app, kept.spans))
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for given in (RECORDED, NOT_RECORDED):
                body = prepare_body(key=canary, value=canary, headers={"h": canary})
                headers = {"traceparent": given}
                answer = await client.post(HALVES, json=body, headers=headers)
                assert answer.status_code == 201
            await client.get("/livez")
    (span,) = kept.ended()
    named = {"http.request.method": "POST", "http.route": HALVES}
    assert named.items() <= (span.attributes or {}).items()
    assert span.name == f"POST {HALVES}"
    assert span.kind is SpanKind.SERVER
    assert (trace_of(span), span.parent and f"{span.parent.span_id:016x}") == (TRACE, CALLER)
    assert canary not in span.to_json()
    assert await select(pool, STORED) == [(context_of(span),), (NOT_RECORDED,)]
