"""Spans continue, link and fail as OpenTelemetry's conventions say, and cost nothing when off."""

from __future__ import annotations

import subprocess
import sys

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased
from opentelemetry.semconv._incubating.attributes import messaging_attributes
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.trace import SpanKind, StatusCode

from outbox.settings.environment import process_environment
from outbox.telemetry import spans as spans_module
from outbox.telemetry.spans import Spans
from tests.fixtures_spans import (
    CALLER,
    NOT_RECORDED,
    RECORDED,
    TRACE,
    KeptSpans,
    context_of,
    linked_ids,
    trace_of,
)

IMPORTS = """
import sys
import api.wiring, checker.wiring, outbox.http_checks.endpoint, checker.relay.shard_relay
from outbox.telemetry.tracing import open_tracing
assert open_tracing("outbox-api", on=False) is None
heavy = ("opentelemetry.sdk", "opentelemetry.exporter", "outbox.telemetry.spans")
print(*[name for name in sys.modules if name.startswith(heavy)])
"""


@pytest.fixture
def kept() -> KeptSpans:
    return KeptSpans()


def test_a_server_span_continues_the_trace_of_its_caller(kept: KeptSpans) -> None:
    kept.spans.server("prepare invoices", RECORDED, {"a": 1}).end()
    span = kept.take()
    assert (span.kind, trace_of(span)) == (SpanKind.SERVER, TRACE)
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == CALLER
    assert dict(span.attributes or {}) == {"messaging.system": "kafka", "a": 1}


def test_without_a_caller_s_context_a_trace_begins(kept: KeptSpans) -> None:
    kept.spans.server("prepare invoices", None, {}).end()
    span = kept.take()
    assert span.parent is None
    assert trace_of(span) != TRACE


def test_the_context_of_a_span_is_what_others_continue(kept: KeptSpans) -> None:
    first = kept.spans.server("prepare invoices", RECORDED, {})
    kept.spans.server("prepare invoices", Spans.traceparent_of(first), {}).end()
    second = kept.take()
    assert second.parent is not None
    assert second.parent.span_id == first.get_span_context().span_id


def test_calls_and_records_have_a_trace_of_their_own_with_links(kept: KeptSpans) -> None:
    kept.spans.client("check billing", [RECORDED, None, "nonsense"], {}).end()
    call = kept.take()
    assert (call.kind, linked_ids(call), call.parent) == (SpanKind.CLIENT, [CALLER], None)
    kept.spans.producer("send invoices", RECORDED, {}, 5).end(9)
    record = kept.take()
    assert (record.kind, linked_ids(record)) == (SpanKind.PRODUCER, [CALLER])
    assert (record.start_time, record.end_time) == (5, 9)
    assert TRACE not in {trace_of(call), trace_of(record)}


def test_a_failed_span_names_its_error(kept: KeptSpans) -> None:
    span = kept.spans.server("settle", None, {})
    Spans.fail(span, "message-not-found")
    span.end()
    failed = kept.take()
    assert failed.status.status_code is StatusCode.ERROR
    assert (failed.attributes or {})["error.type"] == "message-not-found"


@pytest.mark.parametrize(("given", "recorded"), [(RECORDED, 1), (NOT_RECORDED, 0)])
def test_a_linked_span_is_recorded_if_its_prepare_was(given: str, recorded: int) -> None:
    for configured in (ALWAYS_ON, ALWAYS_OFF):
        kept = KeptSpans(ParentBased(configured))
        kept.spans.client("check billing", [given], {}).end()
        kept.spans.producer("send invoices", given, {}, 1).end()
        assert len(kept.ended()) == 2 * recorded


def test_without_a_link_the_configured_sampler_decides() -> None:
    kept = KeptSpans(ParentBased(ALWAYS_OFF))
    kept.spans.client("check billing", [None], {}).end()
    kept.spans.server("prepare invoices", None, {}).end()
    assert kept.ended() == []
    kept.spans.server("prepare invoices", RECORDED, {}).end()
    assert trace_of(kept.take()) == TRACE


def test_the_names_are_those_of_the_semantic_conventions() -> None:
    assert spans_module.ERROR_TYPE == error_attributes.ERROR_TYPE
    assert {messaging_attributes.MESSAGING_SYSTEM: "kafka"} == spans_module.SYSTEM


def test_nothing_of_the_sdk_is_loaded_when_tracing_is_off() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_the_id_of_a_span_is_in_its_context(kept: KeptSpans) -> None:
    span = kept.spans.server("prepare invoices", None, {})
    span.end()
    ended = kept.take()
    assert Spans.traceparent_of(span) == context_of(ended)


@pytest.mark.parametrize("program", ["api", "checker"])
def test_a_program_does_not_start_with_another_protocol(program: str) -> None:
    environment = process_environment() | {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        "OUTBOX_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    }
    done = subprocess.run(
        [sys.executable, "-m", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2
    expected = "OTEL_EXPORTER_OTLP_PROTOCOL: spans are sent as http/protobuf, not 'grpc'"
    assert done.stderr.splitlines() == [f"outbox-{program}: {expected}"]
