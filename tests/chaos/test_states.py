"""Runs reach the states that they test: refusals, a halt, retired leaves, an old installation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.judge.final_state import read_final_state
from chaos.judge.verdict import Verdict
from chaos.profiles.fault_mixes import CHECKERS, RETENTION, Mix
from chaos.profiles.profile import Profile
from chaos.profiles.schedule import Fault
from chaos.profiles.states import HALTED, REFUSED, RETIRED
from chaos.run.slices import erase_servers, run_and_judge

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos, pytest.mark.deep]

CALM = Profile(
    name="states-test",
    seconds=40.0,
    proxies=True,
    client_processes=1,
    messages_per_second=100.0,
    drain_seconds=240.0,
    mixes=(Mix(kind="refuse_write", targets=("chaos.six",)),),
)
REFUSALS = (
    Fault(at=4.0, kind="refuse_size", target="chaos.three", seconds=4.0),
    Fault(at=12.0, kind="refuse_topic", target="kafka", seconds=4.0),
    Fault(at=18.0, kind="refuse_write", target="chaos.six", seconds=3.0),
    Fault(at=26.0, kind="other_database", target="postgres", seconds=2.0),
)


def played(run: Path, profile: Profile, faults: tuple[Fault, ...] | None = None) -> Verdict:
    """Run the service under load with these faults."""
    verdict = run_and_judge(run, profile, 1, lambda _: None, faults)
    erase_servers(run)
    return verdict


def halted_shards(run: Path) -> set[int]:
    """Return the shards that a run has halted, at least one."""
    with (run / "history" / "harness.jsonl").open() as lines:
        events = [json.loads(line) for line in lines]
    done = [each for each in events if each.get("kind") == "other_database" and "facts" in each]
    assert done
    return {each["facts"]["shard"] for each in done}


def test_records_that_kafka_refuses_are_held_and_released_and_a_halt_is_resolved(
    tmp_path: Path,
) -> None:
    profile = replace(CALM, must_reach=(*REFUSED, *HALTED))
    verdict = played(tmp_path / "run", profile, REFUSALS)
    assert (verdict.verdict, verdict.reasons) == ("PASS", []), verdict.text()
    assert halted_shards(tmp_path / "run") <= set(read_final_state(tmp_path / "run").commit_log)


def test_leaves_are_retired_under_kills_and_nothing_unfinished_goes_with_them(
    tmp_path: Path,
) -> None:
    profile = replace(
        CALM,
        seconds=150.0,
        settings=RETENTION,
        must_reach=RETIRED,
        mixes=(
            Mix(kind="pass_leaf", targets=("postgres",), planned=(0.02,)),
            Mix(kind="kill", targets=CHECKERS, per_minute=12),
        ),
    )
    verdict = played(tmp_path / "run", profile)
    assert (verdict.verdict, verdict.reasons) == ("PASS", []), verdict.text()
    assert verdict.invariants["I15"]["checked"] == verdict.reached[RETIRED[1]] > 0
