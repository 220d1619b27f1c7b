"""What a program writes to stderr, also by its libraries and when it dies, shows no secret."""

from __future__ import annotations

import subprocess
import sys

import pytest

from outbox.telemetry.events import trace_facts

CANARY = "canary-password-3f"
HEAD = f"""
import logging, threading
from outbox.telemetry.events import configure_logging, get_logger, log_uncaught_errors
configure_logging("info", STYLE, ["{CANARY}"])
log_uncaught_errors()

class Quoting(Exception):
    class diag:
        message_primary, sqlstate = "the row breaks a rule", "23514"

    def __str__(self):
        return "DETAIL: the row has canary-payload"

def fail():
    raise Quoting
"""
CASES = {
    "an event": 'get_logger().info("started", url="postgresql://u:{0}@h/x", more=["{0}"])',
    "an exception": 'try: fail()\nexcept Exception: get_logger().exception("step_failed")',
    "a library's line": 'logging.getLogger("asyncio").warning("connection to %s", "{0}")',
    "a library's exception": (
        "try: fail()\nexcept Exception: "
        'logging.getLogger("asyncio").exception("never retrieved: {0}")'
    ),
    "a thread that dies": (
        "def work(): raise RuntimeError('{0}')\n"
        "thread = threading.Thread(target=work); thread.start(); thread.join()"
    ),
    "the program that dies": "fail()",
    "the program that dies of a secret": "raise RuntimeError('{0}')",
}


@pytest.mark.parametrize("style", ["json", "console"])
@pytest.mark.parametrize("case", CASES)
def test_no_line_shows_a_secret_or_a_payload(case: str, style: str) -> None:
    program = HEAD.replace("STYLE", repr(style)) + CASES[case].format(CANARY)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stderr, "something is written"
    assert "canary" not in done.stdout + done.stderr
    if "dies" in case or "exception" in case:
        assert "Quoting" in done.stderr or "RuntimeError" in done.stderr


@pytest.mark.parametrize("given", [None, "", "any text of the SQL mode", "00-1-2-01"])
def test_a_line_without_a_trace_context_has_no_trace(given: str | None) -> None:
    assert trace_facts(given) == {}


def test_a_line_names_the_trace_of_its_message() -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    assert trace_facts(f"00-{trace}-b7ad6b7169203331-01") == {"trace_id": trace}
