"""The switch of tracing. When it is off, nothing of OpenTelemetry's SDK is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outbox.telemetry.spans import Spans


def open_tracing(service: str, *, on: bool) -> Spans | None:
    """Return the spans of this process if tracing is on, else None."""
    if not on:
        return None
    from outbox.telemetry.spans import send_to_collector

    return send_to_collector(service)
