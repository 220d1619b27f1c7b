"""The real process, killed where it hurts: it has been or it never was, and nobody waits for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psycopg
import pytest
from pyspark.sql import SparkSession

from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from outbox.errors import RunOvertaken
from outbox.kafka.progress_topic import PROGRESS_TOPIC
from outbox.messages.message import Resolution
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.settings.environment import process_environment
from spark.audit.audit import Audit
from spark.findings.finding_class import Cause
from spark.report.report import Report
from tests.fixtures_databases import drop_database, make_database
from tests.fixtures_waiting import wait_for
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_runs import make_options, make_parts
from tests.spark.jvm.fixtures_clusters import SMALL_DRIVER

pytestmark = [*REAL_STORES, pytest.mark.deep]

COMMAND: Final = Path(sys.executable).parent / "outbox-reconcile"
PATIENCE: Final = 240
LAST_STAGE: Final = "keep what is open"
"""After it the run is stored."""
STATE: Final = """
SELECT 'outbox.' || tablename FROM pg_tables
WHERE schemaname = 'outbox' AND (tablename LIKE 'reconciliation%' OR tablename = 'progress')
"""
WAITING: Final = """
SELECT 1 FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'outbox-reconcile'
    AND wait_event_type = 'Lock'
"""


@pytest.fixture(scope="module")
def installation(
    postgres_server: EmbeddedPostgres,
    template_database: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[OutboxWriter]:
    """An installation of its own, with one message lost."""
    url = make_database(postgres_server.database_url, template_database)
    broker = EmbeddedKafka(tmp_path_factory.mktemp("kafka"))
    broker.start()
    writer = OutboxWriter(url, broker.bootstrap_servers, PROGRESS_TOPIC.split(".")[0])
    writer.create_topics("points")
    writer.end(writer.prepare("points", 5), Resolution.COMMIT)
    writer.publish(lambda record: () if record.key == b"member-0" else (record,))
    yield writer
    broker.stop()
    broker.erase()
    drop_database(postgres_server.database_url, url)


@contextmanager
def started(installation: OutboxWriter, folder: Path) -> Iterator[Callable[[], str]]:
    """Start a run; yield its output so far; kill it and its JVM at the end of the block."""
    folder.mkdir(exist_ok=True)
    said = folder / "stderr.txt"
    with (
        said.open("w") as stderr,
        subprocess.Popen(
            [COMMAND, "run", "--report", str(folder)],
            env=environment(installation),
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield said.read_text
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def environment(installation: OutboxWriter) -> dict[str, str]:
    """Return the environment of a process without the settings of the user."""
    inherited = process_environment().items()
    ours = {
        "database_url": installation.database_url,
        "kafka_bootstrap_servers": installation.bootstrap_servers,
        "reconcile_spark_conf": json.dumps(SMALL_DRIVER),
    }
    return {name: text for name, text in inherited if not name.startswith("OUTBOX_")} | {
        f"OUTBOX_{name.upper()}": text for name, text in ours.items()
    }


def stored(database_url: str) -> dict[str, object]:
    """Return everything that runs store in the database."""
    with psycopg.connect(database_url) as connection:
        tables = connection.execute(STATE).fetchall()
        return {
            table: connection.execute(f"SELECT t::text FROM {table} t ORDER BY 1").fetchall()
            for (table,) in tables
        }


def runs(database_url: str) -> list[str]:
    """Return the ids of the runs that are stored."""
    return [each.run_id for each in PostgresRunStore(database_url).past(99)]


def next_run(session: SparkSession, installation: OutboxWriter, folder: Path) -> Report:
    """Return the report of the next run without storing it."""
    return Audit(make_parts(session, installation), make_options(installation, folder)).run()


def free(database_url: str) -> bool:
    """Tell whether a run may begin."""
    with suppress(RunOvertaken), PostgresRunStore(database_url).run_lock():
        return True
    return False


@contextmanager
def kept_from_storing(installation: OutboxWriter) -> Iterator[Callable[[], object]]:
    """Let no run be stored within the block; yield what waits until one tries."""
    url = installation.database_url
    with psycopg.connect(url) as gate, psycopg.connect(url, autocommit=True) as watch:
        gate.execute("LOCK TABLE outbox.reconciliation_run IN EXCLUSIVE MODE")
        yield lambda: wait_for(lambda: watch.execute(WAITING).fetchone(), PATIENCE)
        gate.rollback()


def folder_of(run_folder: Path) -> Path:
    """Return where the one run of a report folder writes its files."""
    (found,) = run_folder.glob("run_id=*")
    return found


def test_a_run_killed_between_its_transaction_and_its_files_has_been(
    installation: OutboxWriter, session: SparkSession, tmp_path: Path
) -> None:
    """The page is a pipe that nobody reads; while the run is under way no other one begins."""
    with started(installation, tmp_path) as said:
        with kept_from_storing(installation) as until_it_tries:
            until_it_tries()
            second = subprocess.run(
                [COMMAND, "run", "--report", str(tmp_path / "second")],
                env=environment(installation),
                capture_output=True,
                text=True,
                check=False,
            )
            os.mkfifo(folder_of(tmp_path) / "report.html")
        run_id = folder_of(tmp_path).name.partition("=")[2]
        wait_for(lambda: run_id in runs(installation.database_url))
        assert "sum up" in said()
    assert (second.returncode, second.stdout) == (5, "")
    assert second.stderr.splitlines()[1:] == [
        "outbox-reconcile: another run is in progress; nothing was started"
    ]
    assert not (folder_of(tmp_path) / "report.json").exists()
    assert wait_for(lambda: free(installation.database_url))
    report = next_run(session, installation, tmp_path / "next")
    assert (report.plan.origin.run_id, report.counts.records) == (run_id, 0)
    assert (report.changes.new, report.count(Cause.LOST_PUBLISHED)) == (0, 1)


def test_a_run_killed_at_the_end_of_its_last_stage_or_in_its_transaction_never_was(
    installation: OutboxWriter, session: SparkSession, tmp_path: Path
) -> None:
    """It changed nothing, and the next one begins where it began."""
    url = installation.database_url
    before = stored(url)
    with started(installation, tmp_path / "stage") as said:
        wait_for(lambda: f"\n{LAST_STAGE}" in said(), PATIENCE)
    assert wait_for(lambda: free(url))
    assert stored(url) == before
    with (
        kept_from_storing(installation) as until_it_tries,
        started(installation, tmp_path / "transaction"),
    ):
        until_it_tries()
    assert wait_for(lambda: free(url))
    assert stored(url) == before
    report = next_run(session, installation, tmp_path / "next")
    before_it = [None, *runs(url)][-1]
    assert (report.plan.origin.run_id, report.count(Cause.LOST_PUBLISHED)) == (before_it, 1)
