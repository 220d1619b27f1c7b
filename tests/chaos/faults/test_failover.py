"""The primary or its newest commits are lost under load, and the service continues."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.profiles import Profile
from chaos.run import run_and_judge
from chaos.schedule import Fault

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos, pytest.mark.deep]

CALM = Profile(
    name="failover-test",
    mixes=(),
    client_processes=1,
    messages_per_second=100.0,
    drain_seconds=180.0,
    spark=False,
)


def play(run: Path, *kinds: str) -> None:
    """Run the service under load with one fault after another; nothing may be violated."""
    faults = tuple(
        Fault(at=4.0 + 9.0 * n, kind=kind, target="postgres", seconds=2.0)
        for n, kind in enumerate(kinds)
    )
    profile = replace(CALM, seconds=6.0 + 9.0 * len(kinds))
    verdict = run_and_judge(run, profile, 1, lambda _: None, faults=faults)
    found = (verdict.verdict, verdict.faults)
    assert found == ("PASS", dict.fromkeys(kinds, 1)), verdict.text()


def rows(file: Path) -> list[dict[str, Any]]:
    """Return the lines of one file of a run."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_f9_a_synchronous_standby_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    play(tmp_path / "run", "promote_synchronous")
    assert not (tmp_path / "run" / "lost").exists()


def test_f10_a_lost_tail_is_all_that_is_lost_and_its_orphans_are_named(tmp_path: Path) -> None:
    run = tmp_path / "run"
    play(run, "promote_asynchronous", "restore")
    tail = [row for file in (run / "lost").iterdir() for row in rows(file)]
    published = [row["id"] for row in rows(run / "leftovers" / "records.jsonl")]
    assert len(published) == len(set(published))
    forgotten = {row["id"] for row in tail if row["half_lost"]}
    named = {row["id"] for row in rows(run / "leftovers" / "already.jsonl")}
    assert forgotten & set(published) <= named
