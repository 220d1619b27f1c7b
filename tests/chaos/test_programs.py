"""The programs of a run: started again after their death, their ends counted by reason."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from chaos.programs import FAILPOINT, STOPPED, Program
from tests.fixtures_waiting import wait_for

pytestmark = pytest.mark.chaos

SLEEP = "import signal; signal.pause()"
DIE = "import os; os.kill(os.getpid(), 9)"

Ends = list[tuple[str, str]]
Start = Callable[..., tuple[Program, Ends]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start programs, which are stopped after the test."""
    with ExitStack() as stack:

        def started(code: str = SLEEP, failpoint: str = "") -> tuple[Program, Ends]:
            ends: Ends = []
            program = Program(
                "program-0",
                [sys.executable, "-c", code],
                lambda life: {"LIFE": str(life)},
                tmp_path,
                lambda name, why: ends.append((name, why)),
            )
            program.failpoint = failpoint
            stack.callback(program.stop)
            program.start()
            wait_for(lambda: program.lives)
            return program, ends

        yield started


def test_a_killed_program_is_started_again_and_its_kill_is_counted(start: Start) -> None:
    program, ends = start()
    wait_for(lambda: program.pid)
    assert program.kill("because")
    wait_for(lambda: program.lives == 2 and program.pid)
    assert ends == [("program-0", "because")]


def test_only_a_life_with_a_failpoint_dies_at_one(start: Start) -> None:
    _, ends = start(DIE, failpoint="relay.after_lock=kill")
    wait_for(lambda: len(ends) >= 2, seconds=20)
    assert [why for _, why in ends[:2]] == [FAILPOINT, f"ended with {-signal.SIGKILL}"]


def test_a_stopped_program_is_not_started_again(start: Start) -> None:
    program, ends = start()
    wait_for(lambda: program.pid)
    program.stop()
    assert (program.lives, program.pid, ends) == (1, None, [("program-0", STOPPED)])
