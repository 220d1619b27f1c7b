"""`outbox-reconcile run` as a process of its own, on servers of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from devservers.kafka import EmbeddedKafka
from outbox.kafka.progress_topic import PROGRESS_TOPIC
from outbox.messages.message import Resolution
from outbox.settings.environment import process_environment
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter

pytestmark = REAL_STORES

COMMAND = Path(sys.executable).parent / "outbox-reconcile"
OPERATORS = COMMAND.with_name("outbox")
LOST = (b"member-0", b"member-1")


def run(
    *arguments: str, program: Path | str = COMMAND, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end with these settings and no others."""
    inherited = process_environment().items()
    environment = {name: text for name, text in inherited if not name.startswith("OUTBOX_")}
    environment |= {f"OUTBOX_{name.upper()}": text for name, text in settings.items()}
    return subprocess.run(
        [program, *arguments], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.deep
def test_the_command_exits_7_with_findings_and_ends_with_verdict_totals_and_report(
    database_url: str, own_broker: EmbeddedKafka, tmp_path: Path
) -> None:
    writer = OutboxWriter(database_url, own_broker.bootstrap_servers, PROGRESS_TOPIC.split(".")[0])
    writer.create_topics("points")
    halves = writer.prepare("points", 5)
    writer.end(halves[:4], Resolution.COMMIT)
    writer.publish(lambda record: () if record.key in LOST else (record,))

    done = run(
        *("run", "--report", str(tmp_path / "reports"), "-o", "table"),
        database_url=database_url,
        kafka_bootstrap_servers=own_broker.bootstrap_servers,
    )

    *_, verdict, totals, report = done.stdout.splitlines()
    assert (done.returncode, verdict) == (7, "verdict: findings")
    assert totals.startswith("totals: missing 2, duplicate 0, unexpected 0, mismatch 0, ")
    assert re.findall(r"[1-9]", totals.removeprefix("totals: missing 2")) == []
    page = Path(report.removeprefix("report: ")).read_text("utf-8")
    assert str(halves[0].message_id) in page
    assert "Traceback" not in done.stderr
    assert len(runs_of(tmp_path)) == 1
    assert [line for line in done.stderr.splitlines() if line.startswith("read records")]


def runs_of(folder: Path) -> list[Path]:
    """Return what runs have left there, and what they staged."""
    return [each for each in (folder / "reports").glob("[.r]*") if each.is_dir()]


@pytest.mark.deep
def test_an_unreachable_store_exits_6_in_one_line(database_url: str, tmp_path: Path) -> None:
    done = run(
        *("run", "--report", str(tmp_path)),
        database_url=database_url,
        kafka_bootstrap_servers="127.0.0.1:1",
    )
    *signs_of_life, error = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (6, "")
    assert error.startswith("outbox-reconcile: Kafka: ")
    assert all("still running" in line for line in signs_of_life)
