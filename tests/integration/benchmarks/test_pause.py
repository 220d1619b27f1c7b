"""A paused process tree is stopped as a whole, and goes on afterwards."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.measure.cpu_time import cpu_seconds, process_tree
from benchmarks.measure.pause import pause, resume
from tests.fixtures_waiting import wait_for

BUSY = "while True: pass"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"


@pytest.fixture
def busy_child() -> Iterator[subprocess.Popen[bytes]]:
    """Run a parent whose child computes without end."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT])
    try:
        wait_for(lambda: len(process_tree(parent.pid)) == 2)
        yield parent
    finally:
        for pid in reversed(process_tree(parent.pid)):
            subprocess.run(["kill", "-KILL", str(pid)], check=False)
        parent.wait()


def states(parent: subprocess.Popen[bytes]) -> set[str]:
    """Return the states of the tree's processes, as the kernel names them."""
    found = (Path(f"/proc/{pid}/stat").read_text() for pid in process_tree(parent.pid))
    return {each.rpartition(")")[2].split()[0] for each in found}


def test_a_paused_tree_is_stopped_and_then_goes_on(busy_child: subprocess.Popen[bytes]) -> None:
    pause([busy_child.pid])
    wait_for(lambda: states(busy_child) == {"T"})
    before = cpu_seconds(busy_child.pid)
    resume([busy_child.pid])
    wait_for(lambda: cpu_seconds(busy_child.pid) > before + 0.05)
    assert "T" not in states(busy_child)


def test_a_parent_comes_before_its_child(busy_child: subprocess.Popen[bytes]) -> None:
    assert next(iter(process_tree(busy_child.pid))) == busy_child.pid


def test_a_tree_without_its_child_is_the_parent_alone(busy_child: subprocess.Popen[bytes]) -> None:
    _, child = process_tree(busy_child.pid)
    assert list(process_tree(busy_child.pid, apart={child})) == [busy_child.pid]


def test_a_process_that_has_ended_is_no_error() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    pause([ended.pid])
    assert process_tree(ended.pid) == {}
