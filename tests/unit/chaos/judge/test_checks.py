"""Which checks are late, which answers a crash may lose, and which halves may be parked."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.judge import judge
from tests.unit.chaos.judge.fixtures_broken_run import AGED, park, violated
from tests.unit.chaos.judge.fixtures_clean_run import UNIX, clean_run
from tests.unit.chaos.judge.fixtures_run_folder import name


@pytest.mark.parametrize(
    ("kind", "expected"), [("postgres_stop", set[str]()), ("long_transaction", {"I12"})]
)
def test_an_answer_may_be_lost_by_a_crash_of_postgresql_and_by_nothing_that_breaks_no_session(
    tmp_path: Path, kind: str, expected: set[str]
) -> None:
    run = clean_run(tmp_path / "run")
    run.note("endpoint-0", 12.0, "check", "ok", items=[{"id": name(8), "answered": "UNKNOWN"}])
    run.note("harness", 13.0, "fault", "invoke", kind=kind, target="postgres", args={})
    run.note("harness", 14.0, "fault", "ok", kind=kind, target="postgres", facts={})
    assert violated(judge(run.write())) == expected


@pytest.mark.parametrize(("died_at", "expected"), [(11.9, set[str]()), (5.0, {"I12"})])
def test_an_answer_to_a_checker_that_died_during_the_call_is_lost(
    tmp_path: Path, died_at: float, expected: set[str]
) -> None:
    run = clean_run(tmp_path / "run")
    run.note("endpoint-0", 12.0, "check", "ok", items=[{"id": name(8), "answered": "UNKNOWN"}])
    run.note("harness", died_at, "death", "ok", target="checker-0", why="kill")
    assert violated(judge(run.write())) == expected


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        (((20.0, 30.0), (12.0, 40.0), (38.0, 58.0)), set[str]()),
        (((12.0, 35.0), (12.0, 35.0), (34.0, 36.0)), {"I12"}),
    ],
    ids=["all of the time", "half of the time, twice"],
)
def test_time_in_stalls_makes_no_check_late_and_overlapping_stalls_count_once(
    tmp_path: Path, spans: tuple[tuple[float, float], ...], expected: set[str]
) -> None:
    run = clean_run(tmp_path / "run")
    run.tables["attempts"][0].update(asked_at=UNIX + 60.0)
    for number, (begin, end) in enumerate(spans):
        about = {"kind": "pause", "target": "checker-0"}
        run.note(f"harness-{number}", begin, "fault", "invoke", **about, args={})
        run.note(f"harness-{number}", end, "fault", "ok", **about, facts={})
    assert violated(judge(run.write())) == expected


@pytest.mark.parametrize(
    ("kind", "target"),
    [("pause", "api-0"), ("frame_hold", "kafka"), ("pass_leaf", "postgres")],
)
def test_a_fault_that_stops_no_check_excuses_no_late_one(
    tmp_path: Path, kind: str, target: str
) -> None:
    run = clean_run(tmp_path / "run")
    run.tables["attempts"][0].update(asked_at=UNIX + 60.0)
    run.note("harness-1", 12.0, "fault", "invoke", kind=kind, target=target, args={})
    run.note("harness-1", 58.0, "fault", "ok", kind=kind, target=target, facts={"met": True})
    assert violated(judge(run.write())) == {"I12"}


def test_a_half_may_be_parked_at_its_age_or_after_its_last_check(tmp_path: Path) -> None:
    old = clean_run(tmp_path / "old")
    park(old, **AGED)
    assert violated(judge(old.write())) == set()
    spent = clean_run(tmp_path / "spent")
    park(spent, parked_at=UNIX + 12.0, parked_reason="check_max")
    spent.facts["policy"]["check_max"] = 2
    assert violated(judge(spent.write())) == set()
