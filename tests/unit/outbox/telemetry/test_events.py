"""What a program writes to stderr, also by its libraries and when it dies, shows no secret."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from outbox.telemetry.events import trace_facts

CANARY = "canary-password-3f"
PROGRAM = f"""
import json, logging, os, sys, threading
from outbox.telemetry.events import configure_logging, get_logger, log_uncaught_errors

class Quoting(Exception):
    class diag:
        message_primary, sqlstate = "the row breaks a rule", "23514"

    def __str__(self):
        return "DETAIL: the row has canary-payload"

def fail():
    raise Quoting

for file, style, case in json.loads(sys.argv[1]):
    if os.fork() == 0:
        for descriptor in (1, 2):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
        configure_logging("info", style, ["{CANARY}"])
        log_uncaught_errors()
        exec(case)
        sys.exit()
    os.wait()
"""
"""Each case is a process of its own, which is a fork because the imports take long."""
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


STYLES = ("json", "console")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """Return what each case writes in each style."""
    files = {
        each: str(tmp_path_factory.mktemp("written") / "out") for each in product(CASES, STYLES)
    }
    given = [(file, style, CASES[case].format(CANARY)) for (case, style), file in files.items()]
    subprocess.run([sys.executable, "-c", PROGRAM, json.dumps(given)], check=True, timeout=120)
    return {each: Path(file).read_text("utf-8") for each, file in files.items()}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("case", CASES)
def test_no_line_shows_a_secret_or_a_payload(
    written: dict[tuple[str, str], str], case: str, style: str
) -> None:
    text = written[case, style]
    assert text, "something is written"
    assert "canary" not in text
    if "dies" in case or "exception" in case:
        assert "Quoting" in text or "RuntimeError" in text


@pytest.mark.parametrize("given", [None, "", "any text of the SQL mode", "00-1-2-01"])
def test_a_line_without_a_trace_context_has_no_trace(given: str | None) -> None:
    assert trace_facts(given) == {}


def test_a_line_names_the_trace_of_its_message() -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    assert trace_facts(f"00-{trace}-b7ad6b7169203331-01") == {"trace_id": trace}
