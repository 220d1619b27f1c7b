"""The report as people see it: taken in Chromium, which must draw it whole and without a complaint.

``python -m tests.unit.spark.report.test_screenshots`` takes the pictures of the documentation.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from outbox.reconciliation.finding import FindingChanges
from spark.findings.finding_class import FindingClass
from spark.report import page
from spark.report.report import Latency, Minute, Report
from tests.fixtures_paths import PROJECT
from tests.unit.spark.fixtures_reports import NOON, make_finding, make_past_run, make_report

PICTURES: Final = PROJECT / "docs" / "images"
BROWSER: Final = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
WIDTH, HEIGHT = 1000, 2000
SMALLEST_BYTES: Final = 40_000
"""A page of one colour takes a tenth of it."""


def clean() -> Report:
    """Return the report of a clean run behind one with a finding, which it closes."""
    return _report(
        changes=FindingChanges(new=0, resolved=1, closed_by_class={"LOST": 1}), lost=(3, 1, 1)
    )


def findings() -> Report:
    """Return the report of a run with old and new findings."""
    old = make_finding(1, finding_class=FindingClass.HELD, partition=3)
    new = [make_finding(n, finding_class=FindingClass.LOST) for n in (2, 3)]
    double = make_finding(4, finding_class=FindingClass.DUPLICATE, partition=0, offset=4711)
    changes = FindingChanges(new=3, resolved=0, known_ids=frozenset({old.finding_id}))
    return _report(*new, double, old, changes=changes, lost=(1, 1))


REPORTS: Final = {"report-clean": clean, "report-findings": findings}


@pytest.mark.skipif(BROWSER is None, reason="neither chromium nor google-chrome is on the PATH")
@pytest.mark.parametrize("name", REPORTS)
def test_chromium_draws_the_report_and_the_documentation_shows_it(
    name: str, tmp_path: Path
) -> None:
    taken = take(name, tmp_path)
    kept = PICTURES / f"{name}.png"
    assert size_of(taken) == size_of(kept) == (WIDTH, HEIGHT)
    assert min(taken.stat().st_size, kept.stat().st_size) > SMALLEST_BYTES


def take(name: str, folder: Path) -> Path:
    """Take the picture of a report in Chromium; return where it is."""
    source, picture = folder / f"{name}.html", folder / f"{name}.png"
    source.write_text(page.to_html(REPORTS[name](), samples=50), "utf-8")
    done = subprocess.run(
        [
            str(BROWSER),
            *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--no-first-run", f"--user-data-dir={folder / 'profile'}"),
            *(f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={picture}", source.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "CONSOLE" not in done.stderr, done.stderr
    return picture


def size_of(picture: Path) -> tuple[int, int]:
    """Return width and height of a PNG."""
    head = picture.read_bytes()[:24]
    assert head.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", head[16:24])
    return int(width), int(height)


def _report(*found: object, changes: FindingChanges, lost: tuple[int, ...]) -> Report:
    minutes = [
        Minute(
            minute=NOON - timedelta(minutes=120 - n),
            committed=900 + 37 * (n % 11) + (600 if 40 < n < 55 else 0),
            published=880 + 37 * ((n - 1) % 11) + (580 if 41 < n < 57 else 0),
        )
        for n in range(120)
    ]
    slow = [(n, 0.03 + 0.002 * (n % 7) + (0.4 if 41 < n < 50 else 0.0)) for n in range(120)]
    latencies = [
        Latency(minute=minutes[n].minute, topic=None, messages=900, p50=p / 3, p95=p * 0.8, p99=p)
        for n, p in slow
    ]
    latencies.append(
        Latency(minute=None, topic="points", messages=120_400, p50=0.014, p95=0.031, p99=0.38)
    )
    past = [
        make_past_run(
            str(n),
            verdict="findings" if n >= 24 - len(lost) else "clean",
            open_findings=lost[n - 24] if n >= 24 - len(lost) else 0,
            finished_at=NOON - timedelta(hours=24 - n),
        )
        for n in range(24)
    ]
    return make_report(
        list(found),  # type: ignore[arg-type]
        changes=changes,
        minutes=minutes,
        latencies=latencies,
        past=past,
    )


if __name__ == "__main__":
    PICTURES.mkdir(parents=True, exist_ok=True)
    for each in REPORTS:
        with TemporaryDirectory() as scratch:
            shutil.copyfile(take(each, Path(scratch)), PICTURES / f"{each}.png")
            sys.stdout.write(f"{PICTURES / each}.png\n")
