"""The programs of a run: forked in no time, started again when they die, counted by reason."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos.programs import Child, End, Programs
from tests.waiting import wait_for

pytestmark = pytest.mark.chaos

SLEEPS = "tests.chaos.children:sleep"


class Ended:
    """Every end that was told, in order."""

    def __init__(self) -> None:
        self.ends: list[End] = []

    def __call__(self, _: Child, end: End) -> None:
        """Note an end."""
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


def environment(life: int) -> dict[str, str]:
    """Return what a child is given: its life's number."""
    return {"LIFE": str(life)}


def test_a_killed_child_lives_again_and_its_kill_is_counted(tmp_path: Path) -> None:
    with programs(tmp_path) as (made, ended):
        child = made.add("one", "role", SLEEPS, environment)
        made.start("role")
        assert child.wait_started(20)
        first = child.kill("because")
        wait_for(lambda: child.pid not in (None, first))
        assert ended.ends == [End("one", first or 0, -9, "because")]
        assert made.ends == {"role:because": 1}
        assert made.kills() == 1


def test_a_child_that_kills_itself_died_at_a_failpoint(tmp_path: Path) -> None:
    with programs(tmp_path) as (made, ended):
        made.add("one", "role", "tests.chaos.children:die", environment)
        made.start("role")
        wait_for(lambda: ended.ends)
        assert made.ends["role:failpoint"] >= 1


def test_a_held_child_stays_dead_until_it_is_released(tmp_path: Path) -> None:
    with programs(tmp_path) as (made, ended):
        child = made.add("one", "role", SLEEPS, environment)
        made.start("role")
        assert child.wait_started(20)
        child.hold()
        child.kill()
        wait_for(lambda: ended.ends)
        assert child.pid is None
        child.release()
        assert child.wait_started(20)
        assert child.lives == 2


def test_each_life_has_its_environment_its_log_and_a_session_of_its_own(tmp_path: Path) -> None:
    with programs(tmp_path) as (made, ended):
        child = made.add("one", "role", "tests.chaos.children:tell", environment)
        made.start("role")
        wait_for(lambda: len(ended.ends) >= 2)
        lines = (tmp_path / "one.log").read_text().splitlines()
        assert lines[:2] == ["LIFE=1 session=True", "LIFE=2 session=True"]
        assert child.lives >= 2


def test_forked_lives_do_not_share_their_random_numbers(tmp_path: Path) -> None:
    with programs(tmp_path) as (made, ended):
        made.add("one", "role", "tests.chaos.children:draw", environment)
        made.start("role")
        wait_for(lambda: len(ended.ends) >= 2)
        drawn = (tmp_path / "one.log").read_text().splitlines()
        assert len(set(drawn)) == len(drawn)


def test_a_frozen_child_does_not_move_until_it_is_resumed(tmp_path: Path) -> None:
    with programs(tmp_path) as (made, _):
        child = made.add("one", "role", SLEEPS, environment)
        made.start("role")
        assert child.wait_started(20)
        child.pause()
        wait_for(lambda: _state(child.pid) == "T")
        child.resume()
        wait_for(lambda: _state(child.pid) == "S")


def test_every_child_dies_with_the_harness(tmp_path: Path) -> None:
    with programs(tmp_path) as (made, _):
        child = made.add("one", "role", SLEEPS, environment)
        made.start("role")
        assert child.wait_started(20)
        pid = child.pid
    wait_for(lambda: not Path(f"/proc/{pid}").exists())


def test_a_stopped_child_ends_in_good_order_and_stays_away(tmp_path: Path) -> None:
    with programs(tmp_path) as (made, ended):
        child = made.add("one", "role", SLEEPS, environment)
        made.start("role")
        assert child.wait_started(20)
        made.stop("role")
        assert [end.code for end in ended.ends] == [-15]
        assert child.pid is None


def _state(pid: int | None) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
