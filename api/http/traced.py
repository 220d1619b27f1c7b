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


def traced(service: Guard, spans: Spans) -> App:
    """Return the application that records a span for each request."""

    async def routed(scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve a request; its span has the name of its route, and no part of a caller's path."""

        async def named(message: MutableMapping[str, Any]) -> None:
            template = getattr(scope.get("route"), "path", None)
            if template is not None and message["type"] == "http.response.start":
                span = get_current_span()
                span.update_name(f"{scope['method']} {template}")
                span.set_attribute("http.route", template)
            await send(message)

        await service(scope, receive, named)

    os.environ.setdefault("OTEL_SEMCONV_STABILITY_OPT_IN", "http")  # noqa: TID251  read below
    return OpenTelemetryMiddleware(
        routed,
        excluded_urls=PROBES,
        default_span_details=lambda scope: (scope["method"], {}),
        tracer_provider=spans.provider,
        exclude_spans=["receive", "send"],
    )
