"""What the probe of a check endpoint has found."""

from __future__ import annotations

PASSED = {
    "reachable": True,
    "signature_accepted": True,
    "forgery_refused": True,
    "outcome": "unknown",
    "http_status": 200,
    "latency_ms": 3,
}
