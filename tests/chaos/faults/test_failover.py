"""The primary or its newest commits are lost under load, and the service continues (F9, F10)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from chaos.judge.verdict import Verdict
from chaos.profiles.profile import Profile
from chaos.profiles.schedule import Fault
from chaos.run.slices import erase_servers, run_and_judge

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos, pytest.mark.deep]

CALM = Profile(
    name="failover-test",
    seconds=20.0,
    proxies=True,
    mixes=(),
    client_processes=1,
    messages_per_second=300.0,
    drain_seconds=180.0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A finished run."""

    run: Path
    verdict: Verdict
    facts: dict[str, Any]
    """the facts of the fault"""

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the lines of one file of the run."""
        return [json.loads(line) for line in (self.run / name).read_text().splitlines()]

    def lost(self) -> list[dict[str, Any]]:
        """Return the losses that the nemesis recorded."""
        return self.rows(str(self.facts["file"]))


def play(run: Path, kind: str) -> Played:
    """Run the service under load with one fault in the middle."""
    fault = Fault(at=6.0, kind=kind, target="postgres", seconds=4.0)
    verdict = run_and_judge(run, CALM, 1, lambda _: None, faults=(fault,))
    erase_servers(run)
    lines = (run / "history" / "harness.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    facts = [each["facts"] for each in events if each["f"] == "fault" and "facts" in each]
    assert len(facts) == 1, [each for each in events if each["f"] == "fault"]
    assert "skipped" not in facts[0], facts[0]
    return Played(run=run, verdict=verdict, facts=facts[0])


def test_f9_a_synchronous_standby_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    played = play(tmp_path / "run", "promote_synchronous")
    assert played.verdict.verdict == "PASS", played.verdict.text()
    assert not (played.run / "lost").exists()


@pytest.mark.parametrize("kind", ["promote_asynchronous", "restore"])
def test_f10_a_lost_tail_is_all_that_is_lost_and_its_orphans_are_named(
    tmp_path: Path, kind: str
) -> None:
    played = play(tmp_path / "run", kind)
    assert played.verdict.verdict == "PASS", played.verdict.text()
    tail = played.lost()
    assert tail
    published = [row["id"] for row in played.rows("leftovers/records.jsonl")]
    assert len(published) == len(set(published))
    forgotten = {row["id"] for row in tail if row["half_lost"]}
    named = {row["id"] for row in played.rows("leftovers/already.jsonl")}
    assert forgotten & set(published) <= named
