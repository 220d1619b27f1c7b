"""What the probe of a check endpoint has found."""

from __future__ import annotations

PASSED = {
    "reachable": True,
    "signature_accepted": True,
    "forgery_refused": True,
    "outcome": "unknown",
    "latency_ms": 3,
}
