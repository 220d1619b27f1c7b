"""The service with a span for each request, by OpenTelemetry's own instrumentation.

Imported only when tracing is on. A prepare stores the context of its span, which goes with the
record and with a check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware

from api.http.exchange import App, AsgiScope

if TYPE_CHECKING:
    from api.guard import Guard
    from outbox.telemetry.spans import Spans

PROBES = "/livez$,/readyz$,/metrics$"


def traced(service: Guard, spans: Spans) -> App:
    """Return the application that records a span for each request."""

    def details(scope: AsgiScope) -> tuple[str, dict[str, Any]]:
        """Return the name of a span and its attributes; no part of a caller's path."""
        method = scope["method"]
        route = service.find_hot_route(method, scope["path"])
        if route is None:
            return method, {}
        return f"{method} {route.template}", {"http.route": route.template}

    return OpenTelemetryMiddleware(
        service,
        excluded_urls=PROBES,
        default_span_details=details,
        tracer_provider=spans.provider,
        exclude_spans=["receive", "send"],
    )
