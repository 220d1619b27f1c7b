"""Builds the SparkSession: master, the five jars of the connectors, pinned settings, quiet logs.

Jars are files that the set-up fetched; nothing is resolved at run time. What the JVM writes goes to
a log file, so that stderr stays ours. A Spark Connect server has master, jars and JVM of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pyspark.errors import (
    AnalysisException,
    PySparkRuntimeError,
    PySparkValueError,
    RetriesExceeded,
)
from pyspark.sql import SparkSession

from outbox.errors import ConfigurationError
from spark.jvm.class_archive import archive_options
from spark.spark_errors import SparkFailure

SPARK_VERSION: Final = "4.0.0"
JARS: Final = (
    f"spark-sql-kafka-0-10_2.13-{SPARK_VERSION}.jar",
    f"spark-token-provider-kafka-0-10_2.13-{SPARK_VERSION}.jar",
    "kafka-clients-3.9.0.jar",
    "commons-pool2-2.12.0.jar",
    "postgresql-42.7.14.jar",
)
READ_THE_OLD_WAY: Final = "avro,csv,json,orc,parquet,text"
"""Spark's own list without Kafka. By the older interface each record becomes a Row and back, which
is a quarter of a bare scan's CPU."""
SETTINGS: Final[Mapping[str, str]] = {
    "spark.app.name": "outbox-reconcile",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.files.maxPartitionBytes": "64m",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.sources.useV1SourceList": READ_THE_OLD_WAY,
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""With its debugging on, PySpark looks up the caller of each step that a query is built of, to name
it in an error: a tenth of the CPU of a small run."""
QUICK_RECORDS: Final = 1_000_000
"""Below this the JVM's optimizing compiler costs more than it gains: a cold run of 2 000 records
took 46 CPU-seconds with it and 23 without."""
QUICK_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""Without the optimizing compiler the JVM keeps 48 MB of compiled code if nothing else is said. The
third run of a session fills that: what is in use is thrown out and compiled again, and a run of
3 000 records took 24 to 33 CPU-seconds where 14.5 are enough."""
LONG_JVM: Final = "-XX:+UseParallelGC -XX:CompileThresholdScaling=4"
"""Records become garbage as soon as they are hashed. The parallel collector took a third off the
CPU of reading and staging 2.4 million of them, beside the JVM's own choice (G1). What compiles
queries is called often enough to be optimized itself, and never repays it: with thresholds four
times as high the comparison's third warm run spent 2.2 CPU-seconds on that, before 3.6."""
COMPILED_KEPT: Final = {"spark.sql.codegen.cache.maxEntries": "5000"}
"""A run compiles more than the 100 pieces of code that Spark keeps: the next run of a resident job
would compile all of them anew, and wait for the JVM to make them fast. Only a server's start can
set it."""
LOCAL_ONLY: Final = ("spark.driver.host", "spark.driver.bindAddress")
"""Right for a driver that is its own executor, wrong for a cluster."""
REMOTE_RETRIES: Final = 5
"""How often a call to Spark Connect is tried again, over about 17 s; PySpark's own 15 times are ten
minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """Where Spark runs and what it is given; ``extra`` wins over our own settings."""

    master: str
    jars_dir: Path
    log_file: Path
    expected_records: int = 0
    extra: Mapping[str, str] = field(default_factory=dict)
    remote: str | None = None
    """``sc://…``: a Spark Connect server, in place of the master."""

    def extra_texts(self) -> dict[str, str]:
        """Return the operator's own settings as Spark takes them."""
        return {name: str(text) for name, text in self.extra.items()}


@contextmanager
def spark_session(settings: SessionSettings) -> Iterator[SparkSession]:
    """Open a session and stop it at the end.

    Raises ConfigurationError when a jar, Java or the client of Spark Connect is missing, and for
    what a Spark Connect server does not let us set; SparkFailure when that server does not answer.
    """
    remote = settings.remote
    session = _own_session(settings) if remote is None else _remote_session(remote, settings)
    try:
        yield session
    finally:
        session.stop()


def _own_session(settings: SessionSettings) -> SparkSession:
    jars = required_jars(settings.jars_dir)
    settings.log_file.parent.mkdir(parents=True, exist_ok=True)
    builder = SparkSession.Builder().master(settings.master).config("spark.jars", ",".join(jars))
    for name, text in session_settings(settings).items():
        builder = builder.config(name, text)
    try:
        with _stderr_to(settings.log_file):
            return builder.getOrCreate()
    except PySparkRuntimeError:
        raise ConfigurationError(
            f"Spark did not start; it needs Java 17 or newer (see {settings.log_file})"
        ) from None


def _remote_session(remote: str, settings: SessionSettings) -> SparkSession:
    """Open a session on a server that runs already: only what a session may set is sent.

    The address may bear a token, so no message repeats it.
    """
    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy

        session: Any = SparkSession.Builder().remote(remote).create()
    except ImportError as error:
        raise ConfigurationError(f"Spark Connect needs its client: {error}") from None
    except (PySparkRuntimeError, PySparkValueError):
        raise ConfigurationError(
            "OUTBOX_RECONCILE_SPARK_REMOTE names no Spark Connect server (sc://HOST:15002)"
        ) from None
    session.client.set_retry_policies([DefaultPolicy(max_retries=REMOTE_RETRIES)])
    ours = {name: text for name, text in SETTINGS.items() if name.startswith("spark.sql.")}
    _set_remotely(session, ours | settings.extra_texts())
    opened: SparkSession = session
    return opened


def _set_remotely(session: Any, settings: Mapping[str, str]) -> None:
    try:
        for name, text in settings.items():
            session.conf.set(name, text)
    except AnalysisException:
        session.stop()
        raise ConfigurationError(
            f"OUTBOX_RECONCILE_SPARK_CONF: {name} is the Spark Connect server's to set"
        ) from None
    except RetriesExceeded:
        session.client.close()
        raise SparkFailure("Spark Connect: the server does not answer", unreachable=True) from None


def is_local(master: str) -> bool:
    """Tell whether the driver is its own executor."""
    return master.startswith("local")


def required_jars(jars_dir: Path) -> tuple[str, ...]:
    """Return the paths of all jars. Raises ConfigurationError naming the first missing one."""
    for name in JARS:
        if not (jars_dir / name).is_file():
            raise ConfigurationError(f"{name} is not in {jars_dir}; `make setup` fetches it")
    return tuple(str((jars_dir / name).resolve()) for name in JARS)


def session_settings(settings: SessionSettings) -> dict[str, str]:
    """Return the session's configuration: ours, the interpreter's path, then the operator's."""
    ours = {**SETTINGS, **COMPILED_KEPT}
    if not is_local(settings.master):
        ours = {name: text for name, text in ours.items() if name not in LOCAL_ONLY}
    else:
        quick = settings.expected_records < QUICK_RECORDS
        jvm = (QUICK_JVM if quick else LONG_JVM, archive_options(settings.jars_dir))
        ours["spark.driver.extraJavaOptions"] = " ".join(filter(None, jvm))
    ours["spark.pyspark.python"] = sys.executable
    ours["spark.pyspark.driver.python"] = sys.executable
    return ours | settings.extra_texts()


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Give a child that is started in this block the file as its stderr, for all its life."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("ab") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
