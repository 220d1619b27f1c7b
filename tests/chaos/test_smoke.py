"""The whole service survives a minute of kills and losses, and the judge finds nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from outbox.settings.environment import process_environment

pytestmark = [pytest.mark.deep, pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos]

SECONDS = 400
"""A slow machine drains slowly; an idle one needs 90 s."""
ENOUGH = 500
"""Enough messages for every kill; the number above this depends on the machine's speed."""


def test_nothing_is_lost_doubled_or_inverted_when_everything_is_killed(tmp_path: Path) -> None:
    run = tmp_path / "smoke"
    outbox = Path(sys.executable).with_name("outbox")
    done = subprocess.run(
        [str(outbox), "chaos", "run", "--profile", "smoke", "--seed", "1", "--dir", str(run)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=process_environment(),
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    verdict = json.loads((run / "verdict.json").read_text())
    assert verdict["verdict"] == "PASS"
    assert sum(verdict["kills"].values()) >= 20
    assert verdict["messages"] >= ENOUGH
