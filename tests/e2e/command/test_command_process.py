"""The `outbox` command as a process: an output that cannot be written, an interrupt, no store."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cli.invocation.exit_codes import ExitCode
from outbox.settings.environment import process_environment
from tests.e2e.fixtures_command import outbox
from tests.e2e.fixtures_command_here import Command
from tests.fixtures_programs import program

pytestmark = pytest.mark.e2e

OUTBOX = program("outbox")
NOWHERE = "postgresql://outbox@127.0.0.1:1/outbox"


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Command:
    """Return the command in this process, for what a process would not show better."""
    return Command(capsys)


def in_shell(script: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which `outbox` is the command."""
    environment = process_environment() | {"PYTHONUNBUFFERED": ""}
    whole = f'outbox() {{ {OUTBOX} "$@"; }}; {script}'
    return subprocess.run(
        ["bash", "-c", whole], capture_output=True, text=True, env=environment, timeout=60
    )


def test_an_output_that_nobody_reads_ends_the_command_in_silence() -> None:
    done = in_shell("outbox config show | true")
    assert (done.stderr, done.stdout) == ("", "")


def test_an_output_without_room_is_one_line_and_exit_1() -> None:
    done = in_shell("outbox config show > /dev/full")
    assert (done.returncode, done.stderr) == (1, "outbox: No space left on device\n")


def test_a_closed_output_is_no_error() -> None:
    done = in_shell("outbox config show >&-")
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupt_ends_the_command_without_a_traceback_also_while_it_starts() -> None:
    """It is sent as soon as the first large module is imported; the API never answers."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "cli", "--url", url, "message", "list"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        signal.signal(signal.SIGINT, before)
        assert process.stderr is not None
        for line in process.stderr:
            if " typer" in line:
                break
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    said = [each for each in err.splitlines() if not each.startswith("import time:")]
    assert (process.returncode, said) == (ExitCode.INTERRUPTED, ["outbox: interrupted"])


def test_a_file_of_settings_that_is_no_text_is_one_line(here: Command, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_bytes(b"\xff\xfe")
    for name in ("OUTBOX_CONFIG_FILE", "OUTBOX_API_KEY_FILE"):
        done = here("config", "show", **{name: str(wrong)})
        assert (done.code, done.out) == (ExitCode.USAGE, "")
        assert done.err == f"outbox: {name}: the file that it names is not text in UTF-8\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {producer_group: [", ": while parsing"),
        ("- check_url: x", " must be a list of groups, each with its producer_group"),
        ("producer_group: shipping", " must be a list of groups, each with its producer_group"),
    ],
)
def test_a_file_of_groups_that_is_wrong_is_one_line_and_nothing_is_sent(
    here: Command, tmp_path: Path, text: str, said: str
) -> None:
    wrong = tmp_path / "groups.yml"
    wrong.write_text(text)
    done = here("group", "apply", str(wrong), OUTBOX_API_URL="http://127.0.0.1:1")
    assert (done.code, done.out, done.err.count("\n")) == (ExitCode.USAGE, "", 1)
    assert done.err.startswith(f"outbox: {wrong}{said}")


@pytest.mark.parametrize(
    "words",
    [
        ("key", "create", "--database", "--name", "first", "--scope", "admin", "--group", "*"),
        ("status",),
    ],
    ids=" ".join,
)
def test_a_database_that_is_away_is_one_line_with_its_reason(
    here: Command, words: tuple[str, ...]
) -> None:
    """The process that people type is the same for all: one of them starts it."""
    pepper = "cGVwcGVyIG9mIHRoZSB0ZXN0cw=="
    command = outbox if words == ("status",) else here
    done = command(*words, OUTBOX_DATABASE_URL=NOWHERE, OUTBOX_AUTH_PEPPER=pepper)
    assert (done.code, done.out) == (ExitCode.UNREACHABLE, "")
    assert done.err.count("\n") == 1
    assert "Connection refused" in done.err


def test_a_wrong_value_of_a_flag_is_refused_in_the_name_of_the_flag() -> None:
    stores = {"OUTBOX_DATABASE_URL": NOWHERE, "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    done = outbox("checker", "--only", "nope", **stores, OUTBOX_AUTH_MODE="dev-insecure")
    assert done.err.startswith("outbox-checker: --only: 'nope' is not one of relay, ")
    assert (done.code, done.err.count("\n"), "OUTBOX_" in done.err) == (2, 1, False)
