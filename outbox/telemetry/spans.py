"""The spans of this process and their export over OTLP. Imported only when tracing is on.

Names and attributes follow OpenTelemetry's semantic conventions. No span has a key, a value
or a header of the caller.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from threading import Thread
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from outbox.telemetry.dependency_log import DependencyLog
from outbox.telemetry.version import installed_version

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
        self.provider = provider
        self._tracer = provider.get_tracer("outbox", installed_version())

    def producer(
        self,
        name: str,
        traceparent: str,
        attributes: Mapping[str, AttributeValue],
        started_ns: int,
    ) -> Span:
        """Start the span of a record: in the trace of the given span, with a link to it.

        ``started_ns`` is the time of its start in nanoseconds since 1970.
        """
        context = PROPAGATOR.extract({"traceparent": traceparent}, Context())
        links = [Link(get_current_span(context).get_span_context())]
        everything = {**SYSTEM, **attributes}
        return self._tracer.start_span(
            name, context, SpanKind.PRODUCER, everything, links, started_ns
        )

    @staticmethod
    def fail(span: Span, error_type: str) -> None:
        """Mark a span as failed with an error type of few possible values."""
        span.set_attribute(ERROR_TYPE, error_type)
        span.set_status(StatusCode.ERROR)

    def close(self) -> None:
        """Send what is left; wait for the collector at most ``CLOSE_SECONDS``."""
        sending = Thread(target=self.provider.shutdown, name="outbox-last-spans", daemon=True)
        sending.start()
        sending.join(CLOSE_SECONDS)


def recorded_traceparent() -> str | None:
    """Return the W3C trace context of the current span; None if it is not recorded."""
    if not get_current_span().is_recording():
        return None
    carrier: dict[str, str] = {}
    PROPAGATOR.inject(carrier)
    return carrier["traceparent"]


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
