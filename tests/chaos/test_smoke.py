"""The whole service survives half a minute of kills, and the judge finds nothing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from chaos.programs import SCRIPTS
from outbox.settings.environment import process_environment

pytestmark = [pytest.mark.deep, pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos]

LIMIT_SECONDS = 400
"""A slow machine drains slowly; an idle one needs a minute."""


def test_nothing_is_lost_doubled_or_inverted_when_everything_is_killed(tmp_path: Path) -> None:
    run = tmp_path / "kill"
    done = subprocess.run(
        [SCRIPTS / "outbox", "chaos", "run", "--seconds", "30", "--dir", run],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        env=process_environment(),
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    verdict = json.loads((run / "verdict.json").read_text())
    assert verdict["verdict"] == "PASS"
    assert verdict["kills"] >= 3, "a busy machine starts programs slowly, but some die"
    assert verdict["messages"] >= 500
