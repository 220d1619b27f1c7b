"""A failed span says why, and tracing costs nothing when it is off."""

from __future__ import annotations

import subprocess
import sys

from opentelemetry.trace import StatusCode

from outbox.telemetry.spans import Spans
from tests.fixtures_spans import RECORDED, KeptSpans

IMPORTS = """
import sys
import api.wiring, checker.wiring, outbox.http_checks.endpoint, checker.relay.shard_relay
from outbox.telemetry.tracing import open_tracing
assert open_tracing("outbox-api", on=False) is None
heavy = ("opentelemetry.sdk", "opentelemetry.exporter", "outbox.telemetry.spans")
print(*[name for name in sys.modules if name.startswith(heavy)])
"""


def test_nothing_of_the_sdk_is_loaded_when_tracing_is_off() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_a_failed_span_names_its_error() -> None:
    kept = KeptSpans()
    span = kept.spans.producer("send", RECORDED, {}, 1)
    Spans.fail(span, "MSG_SIZE_TOO_LARGE")
    span.end()
    failed = kept.take()
    assert failed.status.status_code is StatusCode.ERROR
    assert (failed.attributes or {})["error.type"] == "MSG_SIZE_TOO_LARGE"
