"""Live readers prove something only if they were there until the last record."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.judge import judge
from tests.unit.chaos.judge.fixtures_clean_run import TOPIC, clean_run


@pytest.mark.parametrize("kept", [0, 3])
def test_a_live_reader_that_ended_early_proves_nothing(tmp_path: Path, kept: int) -> None:
    run = clean_run(tmp_path / "run")
    lines = run.history["reader-committed"]
    run.history["reader-committed"] = lines[:1]
    if kept:
        run.history["reader-committed"].append({**lines[1], "recs": lines[1]["recs"][:kept]})
    verdict = judge(run.write())
    assert verdict.verdict == "VOID"
    reason = f"the reader committed ended before {8 - kept} records of {TOPIC}/0"
    assert verdict.reasons == [reason]


def test_a_reader_whose_partitions_nobody_noted_proves_nothing(tmp_path: Path) -> None:
    run = clean_run(tmp_path / "run")
    del run.history["reader-uncommitted"][0]
    verdict = judge(run.write())
    assert verdict.verdict == "VOID"
    assert verdict.reasons == ["nobody noted what the reader uncommitted was to read"]
