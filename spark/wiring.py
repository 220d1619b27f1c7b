"""Puts a run together: the only module of this program that names concrete adapters."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from threading import Event
from typing import Any, Final, TextIO

from pyspark.sql import SparkSession

from outbox.checks.ssrf_guard import SsrfPolicy, policy_of
from outbox.clock import SystemClock
from outbox.errors import ConfigurationError, DatabaseUnavailable
from outbox.http_checks.own_listeners import own_listeners
from outbox.http_checks.webhook import Notice, WebhookTarget, tell
from outbox.kafka.log_reader import KafkaLogReader
from outbox.kafka.progress_topic import PROGRESS_TOPIC
from outbox.postgres.reconciliation.finished_runs import PostgresReconciliationRuns
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.postgres.reconciliation.source import Patience, PostgresSource
from outbox.postgres.sessions.connections import make_pool
from outbox.reconciliation.gauges import tell_findings, tell_last
from outbox.reconciliation.log import LogEnd
from outbox.reconciliation.ports import LogReader, RunStore
from outbox.settings.catalogue import Settings
from outbox.telemetry.metrics import Metrics
from spark.columns.staging import PREFIX, refuse_unshared, sweep
from spark.compare.bucket_checksums import Mode
from spark.cut.sources import Sources
from spark.findings.topic_rules import TopicRules, topic_rules
from spark.jvm.kafka_options import kafka_options
from spark.jvm.session import QUICK_RECORDS, SessionSettings, is_local, required_jars, spark_session
from spark.report.language import Language
from spark.report.notification import CHANGED
from spark.report.progress import Progress
from spark.report.textfile import write_textfile
from spark.run_context import Options, RunContext
from spark.spark_errors import told_in_one_line

RUNTIME_JARS: Final = Path(__file__).resolve().parents[1] / ".runtime" / "spark"
"""Where the set-up puts the connectors, unless the setting names another folder."""


@contextmanager
def open_run(
    settings: Settings, stream: TextIO, *, resident: bool = False
) -> Iterator[tuple[RunContext, Options]]:
    """Check the settings, start Spark, and yield everything that a run needs.

    The chain of runs is held from before Spark is started until the end. A resident job holds it
    run by run instead, and is given the JVM of a large run: what it compiles serves all to come.

    Raises ConfigurationError, RunUnderWay, KafkaUnavailable and DatabaseUnavailable before Spark is
    started, SparkFailure for a failed job.
    """
    if settings.reconcile_spark_remote is None:
        required_jars(_jars_dir(settings))
    announce, expose = webhook(settings), textfile(settings)
    rules = topic_rules(settings.reconcile_topic_rules)
    source = postgres_source(settings)
    servers = settings.required_bootstrap_servers()
    options = kafka_options(servers, settings.kafka_config)
    log_facts = KafkaLogReader(servers, settings.kafka_config)
    progress = Progress(stream=stream, clock=SystemClock())
    with progress.stage("reach both stores"):
        expected = expected_records(log_facts, source.topics())
        expected = max(expected, QUICK_RECORDS) if resident else expected
    store = run_store(settings)
    with (
        nullcontext() if resident else store.hold(),
        _session(settings, progress, expected) as session,
        _stage_uri(settings) as stage_uri,
    ):
        if settings.reconcile_spark_remote or not is_local(settings.reconcile_spark_master):
            for place in (stage_uri, str(settings.reconcile_report_dir.resolve())):
                refuse_unshared(session, place)
        parts = RunContext(
            source=source,
            log_facts=log_facts,
            run_store=store,
            sources=Sources(
                spark_session=session,
                kafka_options=options,
                jdbc=source.jdbc,
                connections=settings.reconcile_pg_connections,
            ),
            clock=progress.clock,
            progress=progress,
            pause=Event().wait,
            tell=announce,
            expose=expose,
        )
        yield parts, run_options(settings, rules, stage_uri, session.version)


def postgres_source(settings: Settings) -> PostgresSource:
    """Return the database that is audited, read from its replica where one is set."""
    replica = settings.reconcile_replica_url
    patience = Patience(
        snapshot_seconds=settings.reconcile_snapshot_max_seconds,
        statement_seconds=settings.reconcile_statement_timeout_seconds,
    )
    return PostgresSource(
        settings.required_database_url(), replica.get_secret_value() if replica else None, patience
    )


def run_store(settings: Settings) -> RunStore:
    """Return where runs are kept."""
    return PostgresRunStore(settings.required_database_url(), settings.reconcile_keep_days)


def webhook(settings: Settings) -> Callable[[str, Mapping[str, Any]], str] | None:
    """Return what posts the news of a run, or None where no endpoint is set.

    Raises ConfigurationError for a URL that the guard refuses, and without a secret.
    """
    url, secret = settings.reconcile_webhook_url, settings.reconcile_webhook_secret
    if url is None:
        return None
    if secret is None:
        raise ConfigurationError("OUTBOX_RECONCILE_WEBHOOK_SECRET is not set")
    proxy = settings.check_proxy_url
    target = WebhookTarget(
        url=url,
        secret=secret.get_secret_value(),
        policy=_callback_policy(settings),
        proxy_url=proxy.get_secret_value() if proxy else None,
    ).judged()

    def post(run_id: str, news: Mapping[str, Any]) -> str:
        notice = Notice(notice_id=f"run_{run_id}", kind=CHANGED, data=news)
        done = asyncio.run(tell(target, notice, SystemClock()))
        return f"{'told' if done.told else 'not told'} ({done.said}, attempts {done.attempts})"

    return post


def _callback_policy(settings: Settings) -> SsrfPolicy:
    return policy_of(
        settings.check_allow_cidrs,
        settings.check_allow_hosts,
        settings.check_allow_ports,
        https_only=settings.check_https_only,
        own=own_listeners(settings),
    )


def textfile(settings: Settings) -> Callable[[], str] | None:
    """Return what writes the metrics of the newest run, or None where no file is set.

    Raises ConfigurationError for a file in a folder that is not there.
    """
    path = settings.reconcile_textfile
    if path is None:
        return None
    if not path.parent.is_dir():
        raise ConfigurationError(f"OUTBOX_RECONCILE_TEXTFILE: {path.parent} is no folder")

    async def measured(metrics: Metrics) -> None:
        async with make_pool(settings.required_database_url(), "reconcile", pool_max=1) as pool:
            runs = PostgresReconciliationRuns(pool)
            tell_findings(await runs.open_findings(), metrics)
            last = await runs.last()
        if last is not None:
            tell_last(last, metrics)

    def write() -> str:
        metrics = Metrics()
        try:
            asyncio.run(measured(metrics))
            write_textfile(path, metrics)
        except (OSError, DatabaseUnavailable) as error:
            return f"not written ({error})"
        return f"written to {path}"

    return write


def expected_records(log_facts: LogReader, topics: Sequence[str]) -> int:
    """Return about how many records there are to read, to size the JVM; markers count as well."""
    partitions = log_facts.partitions(topics)
    starts = log_facts.offsets(partitions, LogEnd.START).offsets
    ends = log_facts.offsets(partitions, LogEnd.HIGH_WATERMARK).offsets
    return sum(end - starts.get(partition, 0) for partition, end in ends.items())


def run_options(
    settings: Settings, rules: TopicRules, stage_uri: str, spark_version: str
) -> Options:
    """Return the options of a run from the settings."""
    return Options(
        progress_topic=PROGRESS_TOPIC,
        report_dir=settings.reconcile_report_dir.resolve(),
        stage_uri=stage_uri,
        grace_seconds=settings.reconcile_grace_seconds,
        mode=Mode(settings.reconcile_mode),
        bucket_messages=settings.reconcile_bucket_messages,
        exclude_topics=frozenset(settings.reconcile_exclude_topics),
        topic_rules=rules,
        show_keys=settings.reconcile_show_keys,
        formats=settings.reconcile_report_formats,
        language=Language(settings.reconcile_report_language),
        versions={"spark": spark_version},
    )


@contextmanager
def _session(settings: Settings, progress: Progress, expected: int) -> Iterator[SparkSession]:
    log_file = spark_log(settings)
    session_settings = SessionSettings(
        master=settings.reconcile_spark_master,
        remote=settings.reconcile_spark_remote,
        jars_dir=_jars_dir(settings),
        log_file=log_file,
        expected_records=expected,
        extra=settings.reconcile_spark_conf,
    )
    with ExitStack() as stack:
        with progress.stage("start Spark"):
            session = stack.enter_context(spark_session(session_settings))
        with told_in_one_line(told_by(settings)):
            yield session


def told_by(settings: Settings) -> str:
    """Return what tells more of a failure of Spark: its log here, or the server's."""
    remote = settings.reconcile_spark_remote is not None
    return "the log of the Spark Connect server" if remote else str(spark_log(settings))


def spark_log(settings: Settings) -> Path:
    """Return the file that takes what Spark's JVM says."""
    return settings.reconcile_report_dir.resolve() / "spark.log"


def _jars_dir(settings: Settings) -> Path:
    return settings.reconcile_jars_dir or RUNTIME_JARS


@contextmanager
def _stage_uri(settings: Settings) -> Iterator[str]:
    """Yield where Parquet is staged: the given URI, else a folder that is gone afterwards."""
    if settings.reconcile_stage_uri is not None:
        yield settings.reconcile_stage_uri.rstrip("/")
        return
    parent = settings.reconcile_report_dir.resolve()
    parent.mkdir(parents=True, exist_ok=True)
    sweep(parent, SystemClock().now().timestamp(), settings.reconcile_stage_keep_seconds)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=parent) as folder:
        yield Path(folder).as_uri()
