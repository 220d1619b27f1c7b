"""The whole service survives kills of each of its programs, and the judge finds nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chaos.profiles import KILL
from chaos.run import run_and_judge

pytestmark = [pytest.mark.deep, pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos]

SHORT = replace(KILL, seconds=12.0, spark=False)
"""What an audit says of such a run: tests/spark/audit/test_acceptance.py."""
SEED = 14
"""Of it a client, the endpoint, an API and both checkers are killed early."""


def test_nothing_is_lost_doubled_or_inverted_when_everything_is_killed(tmp_path: Path) -> None:
    verdict = run_and_judge(tmp_path / "kill", SHORT, SEED, lambda _: None)
    assert verdict.verdict == "PASS", verdict.text()
    assert verdict.kills >= 3, "a busy machine starts programs slowly, but some die"
    assert verdict.messages >= 500
