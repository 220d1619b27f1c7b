"""What killed runs leave on disk is swept, what a run works with is not."""

from __future__ import annotations

import os
from pathlib import Path

from spark.columns.staging import PREFIX, sweep

NOW = 1_800_000_000
KEPT_SECONDS = 3600


def test_a_stage_that_nobody_has_touched_for_so_long_is_swept(tmp_path: Path) -> None:
    ages = {"left": KEPT_SECONDS + 1, "young": KEPT_SECONDS - 1}
    for name, age in ages.items():
        folder = tmp_path / f"{PREFIX}{name}"
        (folder / "records").mkdir(parents=True)
        os.utime(folder, (NOW - age, NOW - age))
    report = tmp_path / "run_id=old"
    report.mkdir()
    os.utime(report, (0, 0))
    sweep(tmp_path, NOW, KEPT_SECONDS)
    assert {each.name for each in tmp_path.iterdir()} == {f"{PREFIX}young", "run_id=old"}
