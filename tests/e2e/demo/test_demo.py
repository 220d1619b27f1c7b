"""A shorter `make demo`: the main use case succeeds on the real service and leaves nothing."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from outbox.settings.environment import process_environment
from tests.fixtures_paths import PROJECT

pytestmark = [pytest.mark.e2e, pytest.mark.deep]

SECONDS = 400.0
FOR_OTHERS = {
    "JAVA_TOOL_OPTIONS": "-Xmx1m",
    "PGOPTIONS": "-c statement_timeout=1",
    "PGSSLMODE": "require",
    "SPARK_HOME": "/nowhere",
}
"""What a user has set for other servers."""


def processes_of(marker: str) -> list[str]:
    """Return the command lines that name ``marker``."""
    lines = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if marker in line:
            lines.append(line)
    return lines


@pytest.fixture
def place() -> Iterator[Path]:
    """A temporary folder that PostgreSQL's user can also enter."""
    with tempfile.TemporaryDirectory(prefix="demo, 100% of [ä] ") as name:
        place = Path(name)
        place.chmod(0o711)
        yield place


def test_a24_payments_records_and_points_agree_and_the_report_is_clean(
    tmp_path: Path, place: Path
) -> None:
    reports = tmp_path / "reports, 100% of [ä]"
    arguments = [sys.executable, "-m", "examples.demo", "--purchases", "100"]
    demo = subprocess.run(
        [*arguments, "--report", str(reports)],
        cwd=PROJECT,
        env={**process_environment(), **FOR_OTHERS, "TMPDIR": str(place)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "verdict: clean" in demo.stdout
    assert "Every payment has its points, exactly once." in demo.stdout
    assert list(reports.rglob("*.html"))
    assert processes_of(place.name) == []
    assert list(place.iterdir()) == []
