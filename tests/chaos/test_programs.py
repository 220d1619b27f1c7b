"""The programs of a run: forked fast, restarted after their death, counted by reason."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from chaos.history.process_ends import is_kill
from chaos.programs.children import Child, ProcessExit, Programs
from tests.fixtures_waiting import wait_for

pytestmark = pytest.mark.chaos


class Ended:
    """Every reported end, in order."""

    def __init__(self) -> None:
        self.ends: list[ProcessExit] = []

    def __call__(self, _: Child, end: ProcessExit) -> None:
        """Record an end."""
        self.ends.append(end)


@contextmanager
def programs(folder: Path) -> Iterator[tuple[Programs, Ended]]:
    """Run a zygote for the block."""
    ended = Ended()
    made = Programs(folder, ended)
    try:
        yield made, ended
    finally:
        made.close()


@dataclass(frozen=True)
class Nursery:
    """One zygote for all tests; each test has its own children."""

    programs: Programs
    ended: Ended
    folder: Path

    def child(self, request: pytest.FixtureRequest, what: str = "sleep") -> Child:
        """Start a new child and wait until it runs."""
        name = request.node.name
        child = self.programs.add(name, name, f"tests.chaos.fixtures_children:{what}", environment)
        self.programs.start(name)
        assert child.wait_started(20)
        return child

    def ends(self, child: Child) -> list[ProcessExit]:
        """Return the ends of a child's lives."""
        return [end for end in self.ended.ends if end.name == child.name]

    def lines(self, child: Child) -> list[str]:
        """Return the output of a child."""
        return (self.folder / f"{child.name}.log").read_text().splitlines()


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    folder = tmp_path_factory.mktemp("programs")
    with programs(folder) as (made, ended):
        yield Nursery(made, ended, folder)


def environment(life: int) -> dict[str, str]:
    """Return the environment of a child: the number of its life."""
    return {"LIFE": str(life)}


def test_a_killed_child_is_restarted_and_its_kill_is_counted(
    nursery: Nursery, request: pytest.FixtureRequest
) -> None:
    child = nursery.child(request)
    first = child.kill("because")
    wait_for(lambda: child.pid not in (None, first))
    assert nursery.ends(child) == [ProcessExit(child.name, first or 0, -9, "because")]
    assert nursery.programs.ends[f"{child.role}:because"] == 1
    assert nursery.programs.kills() >= 1


def test_a_child_that_kills_itself_died_at_a_failpoint(
    nursery: Nursery, request: pytest.FixtureRequest
) -> None:
    child = nursery.child(request, "die")
    wait_for(lambda: nursery.ends(child))
    child.hold()
    assert nursery.programs.ends[f"{child.role}:failpoint"] >= 1


def test_a_held_child_stays_dead_until_it_is_released(
    nursery: Nursery, request: pytest.FixtureRequest
) -> None:
    child = nursery.child(request)
    child.hold()
    child.kill()
    wait_for(lambda: nursery.ends(child))
    assert child.pid is None
    child.release()
    assert child.wait_started(20)
    assert child.lives == 2


def test_each_life_has_its_own_environment_log_and_session(
    nursery: Nursery, request: pytest.FixtureRequest
) -> None:
    child = nursery.child(request, "print_environment")
    wait_for(lambda: len(nursery.ends(child)) >= 2)
    child.hold()
    assert nursery.lines(child)[:2] == ["LIFE=1 session=True", "LIFE=2 session=True"]


def test_forked_lives_do_not_share_their_random_numbers(
    nursery: Nursery, request: pytest.FixtureRequest
) -> None:
    child = nursery.child(request, "draw")
    wait_for(lambda: len(nursery.ends(child)) >= 2)
    child.hold()
    drawn = nursery.lines(child)
    assert len(set(drawn)) == len(drawn) >= 2


def test_a_paused_child_does_nothing_until_it_is_resumed(
    nursery: Nursery, request: pytest.FixtureRequest
) -> None:
    child = nursery.child(request)
    wait_for(lambda: _state(child.pid) == "S")
    child.pause()
    wait_for(lambda: _state(child.pid) == "T")
    child.resume()
    wait_for(lambda: _state(child.pid) == "S")


def test_a_stopped_child_ends_in_order_and_is_not_restarted(
    nursery: Nursery, request: pytest.FixtureRequest
) -> None:
    child = nursery.child(request)
    nursery.programs.stop(child.role)
    assert [end.code for end in nursery.ends(child)] == [0]
    assert child.pid is None
    assert nursery.programs.ends[f"{child.role}:stopped"] == 1
    assert not is_kill(f"{child.role}:stopped")


def test_every_child_dies_with_the_harness(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with programs(tmp_path) as (made, ended):
        child = Nursery(made, ended, tmp_path).child(request)
        pid = child.pid
    wait_for(lambda: not Path(f"/proc/{pid}").exists())


def _state(pid: int | None) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
