"""The spans of this process and their export over OTLP. Imported only when tracing is on.

Names and attributes follow OpenTelemetry's semantic conventions. No span has a key, a value, a
header of the caller or a query of a URL.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from threading import Thread
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, StatusCode, TraceState
from opentelemetry.trace import get_current_span as span_in
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import Attributes, AttributeValue

from outbox.telemetry.dependency_log import DependencyLog
from outbox.telemetry.version import installed_version

__all__ = ["Span", "Spans", "send_to_collector"]

SYSTEM: Final = {"messaging.system": "kafka"}
ERROR_TYPE: Final = "error.type"
UNNAMED: Final = "unknown_service"
"""The SDK's service name where the environment gives none."""
CLOSE_SECONDS: Final = 5.0
"""How long a stop waits for a collector to take the last spans."""
PROPAGATOR: Final = TraceContextTextMapPropagator()


class Spans:
    """Starts the spans of this process. Safe from any thread."""

    def __init__(self, provider: TracerProvider) -> None:
        provider.sampler = _AsPrepared(provider.sampler)
        self._provider = provider
        self._tracer = provider.get_tracer("outbox", installed_version())

    def server(
        self, name: str, traceparent: str | None, attributes: Mapping[str, AttributeValue]
    ) -> Span:
        """Start a span that continues the caller's trace; without one it begins a trace."""
        return self._tracer.start_span(
            name, _context_of(traceparent), SpanKind.SERVER, {**SYSTEM, **attributes}
        )

    def client(
        self,
        name: str,
        traceparents: Iterable[str | None],
        attributes: Mapping[str, AttributeValue],
    ) -> Span:
        """Start the span of a call: a trace of its own, with links to the given spans."""
        return self._linked(name, SpanKind.CLIENT, traceparents, attributes, None)

    def producer(
        self,
        name: str,
        traceparent: str,
        attributes: Mapping[str, AttributeValue],
        started_ns: int,
    ) -> Span:
        """Start the span of a record: a trace of its own, with a link to the given span.

        ``started_ns`` is the time of its start in nanoseconds since 1970.
        """
        return self._linked(name, SpanKind.PRODUCER, [traceparent], attributes, started_ns)

    def _linked(
        self,
        name: str,
        kind: SpanKind,
        traceparents: Iterable[str | None],
        attributes: Mapping[str, AttributeValue],
        started_ns: int | None,
    ) -> Span:
        links = [Link(context) for each in traceparents if (context := _valid(each))]
        everything = {**SYSTEM, **attributes}
        return self._tracer.start_span(name, Context(), kind, everything, links, started_ns)

    @staticmethod
    def traceparent_of(span: Span) -> str:
        """Return the W3C trace context that continues a span."""
        context = span.get_span_context()
        flags = int(context.trace_flags)
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{flags:02x}"

    @staticmethod
    def link(span: Span, traceparent: str | None) -> None:
        """Add a link to another span, if there is one."""
        context = _valid(traceparent)
        if context is not None:
            span.add_link(context)

    @staticmethod
    def fail(span: Span, error_type: str) -> None:
        """Mark a span as failed with an error type of few possible values."""
        span.set_attribute(ERROR_TYPE, error_type)
        span.set_status(StatusCode.ERROR)

    def close(self) -> None:
        """Send what is left; wait for the collector at most ``CLOSE_SECONDS``."""
        sending = Thread(target=self._provider.shutdown, name="outbox-last-spans", daemon=True)
        sending.start()
        sending.join(CLOSE_SECONDS)


def send_to_collector(service: str) -> Spans:
    """Return spans that go to the collector which OpenTelemetry's own variables name.

    ``service`` is the service name where the environment gives none.
    """
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL + 1)
    resource = Resource.create({SERVICE_VERSION: installed_version()})
    if str(resource.attributes[SERVICE_NAME]).startswith(UNNAMED):
        resource = resource.merge(Resource({SERVICE_NAME: service}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(_Collector()))
    return Spans(provider)


def _context_of(traceparent: str | None) -> Context:
    if traceparent is None:
        return Context()
    return PROPAGATOR.extract({"traceparent": traceparent}, Context())


def _valid(traceparent: str | None) -> SpanContext | None:
    context = span_in(_context_of(traceparent)).get_span_context()
    return context if context.is_valid else None


class _AsPrepared(Sampler):
    """Records a span with links if one of the linked spans is recorded; others as configured."""

    def __init__(self, configured: Sampler) -> None:
        self._configured = configured

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """Return whether a new span is recorded; see Sampler."""
        if not links:
            return self._configured.should_sample(
                parent_context, trace_id, name, kind, attributes, links
            )
        recorded = any(link.context.trace_flags.sampled for link in links)
        decision = Decision.RECORD_AND_SAMPLE if recorded else Decision.DROP
        return SamplingResult(decision, attributes if recorded else None)

    def get_description(self) -> str:
        """Return the sampler's name; see Sampler."""
        return f"AsPrepared{{{self._configured.get_description()}}}"


class _Collector(SpanExporter):
    """The OTLP exporter; it logs when the collector is lost and when it is back, not between."""

    def __init__(self) -> None:
        self._exporter = OTLPSpanExporter()
        self._log = DependencyLog("trace collector")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans; those that the collector does not take are dropped."""
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._log.back()
        else:
            self._log.lost()
        return result

    def shutdown(self) -> None:
        """End the connection to the collector."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]
