"""Spans for tests: kept in memory, or received by a collector that speaks OTLP over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Sampler

from outbox.telemetry.spans import Spans
from tests.fixtures_http_server import QuietHandler, http_server

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
RECORDED = f"00-{TRACE}-{CALLER}-01"
"""The trace context of a caller whose span is recorded."""
NOT_RECORDED = f"00-{TRACE}-{CALLER}-00"


class KeptSpans:
    """Spans that stay in memory."""

    def __init__(self, sampler: Sampler | None = None) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.spans = Spans(provider)

    def ended(self) -> list[ReadableSpan]:
        """Return the spans that have ended, in that order."""
        return list(self._exporter.get_finished_spans())

    def take(self) -> ReadableSpan:
        """Return the only span that has ended, and forget it."""
        (span,) = self.ended()
        self._exporter.clear()
        return span


def trace_of(span: ReadableSpan) -> str:
    """Return a span's trace id as a trace context writes it."""
    assert span.context is not None
    return f"{span.context.trace_id:032x}"


def id_of(span: ReadableSpan) -> str:
    """Return a span's id as a trace context writes it."""
    assert span.context is not None
    return f"{span.context.span_id:016x}"


def context_of(span: ReadableSpan) -> str:
    """Return the trace context that continues a span."""
    assert span.context is not None
    return f"00-{trace_of(span)}-{id_of(span)}-{int(span.context.trace_flags):02x}"


def linked_ids(span: ReadableSpan) -> list[str]:
    """Return the ids of the spans that a span links to."""
    return [f"{link.context.span_id:016x}" for link in span.links]


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A span as a collector receives it."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    links: tuple[str, ...]
    attributes: dict[str, str]


@dataclass(slots=True)
class Collector:
    """A running collector and what it received."""

    url: str
    received: list[Received] = field(default_factory=list)

    def named(self, name: str) -> list[Received]:
        """Return the received spans of a name."""
        return [span for span in list(self.received) if span.name == name]


@contextmanager
def collector() -> Iterator[Collector]:
    """Run a collector on loopback for the block."""

    class Handler(QuietHandler):
        def serve(self) -> None:
            body = self.body()
            assert self.path == "/v1/traces"
            assert self.headers["content-type"] == "application/x-protobuf"
            running.received.extend(_spans_in(body))
            self.answer(b"")

    with http_server(Handler) as url:
        running = Collector(url=url)
        yield running


def _spans_in(body: bytes) -> Iterator[Received]:
    request = ExportTraceServiceRequest.FromString(body)
    for resource in request.resource_spans:
        names = {each.key: each.value.string_value for each in resource.resource.attributes}
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Received(
                    service=names["service.name"],
                    name=span.name,
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex(),
                    links=tuple(link.span_id.hex() for link in span.links),
                    attributes={each.key: each.value.string_value for each in span.attributes},
                )
