"""Spans of records follow their prepares, and tracing costs nothing when it is off."""

from __future__ import annotations

import subprocess
import sys

from opentelemetry.semconv._incubating.attributes import messaging_attributes
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.trace import SpanKind, StatusCode

from outbox.telemetry import spans as spans_module
from outbox.telemetry.spans import Spans
from tests.fixtures_spans import (
    CALLER,
    NOT_RECORDED,
    RECORDED,
    TRACE,
    KeptSpans,
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


def test_a_record_is_in_the_trace_of_its_prepare_with_a_link() -> None:
    kept = KeptSpans()
    kept.spans.producer("send invoices", RECORDED, {"a": 1}, 5).end(9)
    record = kept.take()
    assert (record.kind, linked_ids(record)) == (SpanKind.PRODUCER, [CALLER])
    assert (record.start_time, record.end_time, trace_of(record)) == (5, 9, TRACE)
    assert dict(record.attributes or {}) == {"messaging.system": "kafka", "a": 1}


def test_a_record_is_recorded_only_if_its_prepare_was() -> None:
    kept = KeptSpans()
    kept.spans.producer("send invoices", NOT_RECORDED, {}, 1).end()
    assert kept.ended() == []


def test_a_failed_span_names_its_error() -> None:
    kept = KeptSpans()
    span = kept.spans.producer("send", RECORDED, {}, 1)
    Spans.fail(span, "MSG_SIZE_TOO_LARGE")
    span.end()
    failed = kept.take()
    assert failed.status.status_code is StatusCode.ERROR
    assert (failed.attributes or {})["error.type"] == "MSG_SIZE_TOO_LARGE"


def test_the_names_are_those_of_the_semantic_conventions() -> None:
    assert spans_module.ERROR_TYPE == error_attributes.ERROR_TYPE
    assert {messaging_attributes.MESSAGING_SYSTEM: "kafka"} == spans_module.SYSTEM


def test_nothing_of_the_sdk_is_loaded_when_tracing_is_off() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
