"""Assembles a run; the only module of this program that names concrete adapters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from threading import Event
from typing import Final, TextIO
from uuid import UUID

from pyspark.sql import SparkSession

from outbox.clock import SystemClock
from outbox.errors import ConfigurationError
from outbox.kafka.log_reader import KafkaLogReader
from outbox.kafka.progress_topic import PROGRESS_TOPIC
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.postgres.reconciliation.source import PostgresSource
from outbox.reconciliation.log import LogEnd
from outbox.settings.catalogue import Settings
from spark.columns.staging import refuse_unshared
from spark.cut.cut_capture import require_readable
from spark.cut.sources import Sources
from spark.findings.topic_rules import TopicRules, topic_rules
from spark.jvm.kafka_options import kafka_options
from spark.jvm.session import (
    QUICK_RECORDS,
    RUNTIME_JARS,
    SessionSettings,
    is_local,
    required_jars,
    spark_session,
)
from spark.jvm.spark_errors import one_line_failures
from spark.progress import Progress
from spark.run_context import Options, RunContext

PG_CONNECTIONS: Final = 4
"""Connections of Spark to PostgreSQL; each reads a part of the 16 shards."""


@contextmanager
def open_run(
    settings: Settings, stream: TextIO, *, resident: bool = False
) -> Iterator[tuple[RunContext, Options]]:
    """Check the settings, and yield everything that a run needs; Spark starts when it is asked for.

    The run lock is held until the end. An audit loop (``resident``) holds it for each run instead,
    and keeps Spark. It gets the JVM of a large run, because later runs reuse what the JVM compiles.

    Raises ConfigurationError, RunOvertaken, KafkaUnavailable, DatabaseUnavailable, and SparkFailure
    for a failed job.
    """
    if settings.reconcile_spark_remote is None:
        required_jars(_jars_dir(settings))
    rules = topic_rules(settings.reconcile_topic_rules)
    source, store = postgres_source(settings), run_store(settings)
    servers = settings.required_bootstrap_servers()
    log_reader = KafkaLogReader(servers, settings.kafka_config)
    progress = Progress(stream=stream, clock=SystemClock())
    with progress.stage("reach both stores"):
        require_readable(log_reader, PROGRESS_TOPIC)
        stage = stage_uri(settings, source.installation_id())
    with nullcontext() if resident else store.run_lock(), ExitStack() as stack:

        def sources() -> Sources:
            stack.close()  # A Spark Connect server deletes a session that is silent for an hour.
            expected = expected_records(log_reader, source.topics())
            expected = max(expected, QUICK_RECORDS) if resident else expected
            session = stack.enter_context(_session(settings, progress, expected))
            if not runs_here(settings):
                for place in (stage, str(report_folder(settings))):
                    refuse_unshared(session, place)
            return Sources(
                spark_session=session,
                kafka_options=kafka_options(servers, settings.kafka_config),
                jdbc=source.jdbc,
                connections=PG_CONNECTIONS,
            )

        context = RunContext(
            source=source,
            log_reader=log_reader,
            run_store=store,
            sources=cache(sources) if settings.reconcile_spark_remote is None else sources,
            clock=progress.clock,
            progress=progress,
            pause=Event().wait,
        )
        yield context, run_options(settings, rules, stage)


def postgres_source(settings: Settings) -> PostgresSource:
    """Return the audited database; it is read from its replica if one is set."""
    replica = settings.reconcile_replica_url
    return PostgresSource(
        settings.required_database_url(), replica.get_secret_value() if replica else None
    )


def run_store(settings: Settings) -> PostgresRunStore:
    """Return the store of the runs."""
    return PostgresRunStore(settings.required_database_url())


def expected_records(log_reader: KafkaLogReader, topics: Sequence[str]) -> int:
    """Return the approximate number of records to read, to size the JVM; it includes markers."""
    partitions = log_reader.partitions(topics)
    starts = log_reader.offsets(partitions, LogEnd.START).offsets
    ends = log_reader.offsets(partitions, LogEnd.HIGH_WATERMARK).offsets
    return sum(end - starts.get(partition, 0) for partition, end in ends.items())


def run_options(settings: Settings, rules: TopicRules, stage: str) -> Options:
    """Return the options of a run from the settings."""
    return Options(
        progress_topic=PROGRESS_TOPIC,
        report_dir=settings.reconcile_report_dir.resolve(),
        stage_uri=stage,
        grace_seconds=settings.reconcile_grace_seconds,
        exclude_topics=frozenset(settings.reconcile_exclude_topics),
        topic_rules=rules,
    )


def runs_here(settings: Settings) -> bool:
    """Whether this process starts the only JVM, which is its own executor."""
    return settings.reconcile_spark_remote is None and is_local(settings.reconcile_spark_master)


@contextmanager
def _session(settings: Settings, progress: Progress, expected: int) -> Iterator[SparkSession]:
    log_file, remote = spark_log(settings), settings.reconcile_spark_remote
    session_settings = SessionSettings(
        master=settings.reconcile_spark_master,
        remote=remote.get_secret_value() if remote else None,
        jars_dir=_jars_dir(settings),
        log_file=log_file,
        expected_records=expected,
        extra=settings.reconcile_spark_conf,
    )
    with ExitStack() as stack:
        with progress.stage("start Spark"):
            session = stack.enter_context(spark_session(session_settings))
        with one_line_failures(failure_log(settings)):
            yield session


def failure_log(settings: Settings) -> str:
    """Return where the details of a Spark failure are: our log file, or the server's log."""
    remote = settings.reconcile_spark_remote is not None
    return "the log of the Spark Connect server" if remote else str(spark_log(settings))


def spark_log(settings: Settings) -> Path:
    """Return the log file of Spark's JVM."""
    return settings.reconcile_report_dir.resolve() / "spark.log"


def _jars_dir(settings: Settings) -> Path:
    return settings.reconcile_jars_dir or RUNTIME_JARS


def report_folder(settings: Settings) -> Path:
    """Return the folder of the reports; it is created if it is missing.

    Raises ConfigurationError if that is not possible.
    """
    folder = settings.reconcile_report_dir.resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        line = f"OUTBOX_RECONCILE_REPORT_DIR: cannot use {folder}: {error.strerror}"
        raise ConfigurationError(line) from None
    return folder


def stage_uri(settings: Settings, installation_id: UUID) -> str:
    """Return where the runs of the installation stage Parquet, each in a folder of its own."""
    if settings.reconcile_stage_uri is not None:
        return f"{settings.reconcile_stage_uri.rstrip('/')}/{installation_id}"
    return f"file://{report_folder(settings)}/.stage-{installation_id}"
