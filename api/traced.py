"""The service with a span for each request, by OpenTelemetry's own instrumentation.

Imported only when tracing is on. A prepare stores the context of its span, which goes with the
record and with a check.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.trace import get_current_span

from api.http.exchange import App, AsgiScope, Receive, Send

if TYPE_CHECKING:
    from api.guard import Guard
    from outbox.telemetry.spans import Spans

PROBES = "/livez$,/readyz$,/metrics$"
ROUTE = "http.route"


def traced(service: Guard, spans: Spans) -> App:
    """Return the application that records a span for each request."""

    def details(scope: AsgiScope) -> tuple[str, dict[str, Any]]:
        """Return the name of a span and its attributes; no part of a caller's path."""
        method = scope["method"]
        route = service.find_hot_route(method, scope["path"])
        if route is None:
            return method, {}
        return f"{method} {route.template}", {ROUTE: route.template}

    async def routed(scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve a request; its span has the name of the route that the framework finds."""

        async def named(message: MutableMapping[str, Any]) -> None:
            template = getattr(scope.get("route"), "path", None)
            if template is not None and message["type"] == "http.response.start":
                span = get_current_span()
                span.update_name(f"{scope['method']} {template}")
                span.set_attribute(ROUTE, template)
            await send(message)

        await service(scope, receive, named)

    os.environ.setdefault("OTEL_SEMCONV_STABILITY_OPT_IN", "http")  # noqa: TID251  read below
    return OpenTelemetryMiddleware(
        routed,
        excluded_urls=PROBES,
        default_span_details=details,
        tracer_provider=spans.provider,
        exclude_spans=["receive", "send"],
    )
