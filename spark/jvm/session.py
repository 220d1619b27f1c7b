"""Builds the SparkSession: master, the five jars of the connectors, pinned settings, quiet logs.

The set-up fetches the jars; nothing is resolved at run time. The output of the JVM goes to a log
file, so that stderr shows only our lines. A Spark Connect server brings its master, jars and JVM.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
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
from spark.jvm.artifacts_folder import remove_at_exit
from spark.jvm.launch import launching
from spark.jvm.spark_errors import SparkFailure

SPARK_VERSION: Final = "4.0.0"
JARS: Final = (
    f"spark-sql-kafka-0-10_2.13-{SPARK_VERSION}.jar",
    f"spark-token-provider-kafka-0-10_2.13-{SPARK_VERSION}.jar",
    "kafka-clients-3.9.0.jar",
    "commons-pool2-2.12.0.jar",
    "postgresql-42.7.14.jar",
)
RUNTIME_JARS: Final = Path(__file__).resolve().parents[2] / ".runtime" / "spark"
"""The folder for the connectors' jars, unless the setting names another one."""
V1_SOURCES: Final = "avro,csv,json,orc,parquet,text"
"""Spark's default list without Kafka. The V1 interface converts each record to a Row and back, a
quarter of the CPU of a bare scan."""
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
    "spark.sql.sources.useV1SourceList": V1_SOURCES,
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""With DataFrame debugging on, PySpark looks up the caller of each step of a query to name it in an
error. That takes a tenth of the CPU of a small run."""
QUICK_RECORDS: Final = 1_000_000
"""Below this number of records the JVM's optimizing compiler costs more than it gains: a cold run
of 2 000 records took 46 CPU-seconds with it and 23 without."""
QUICK_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""Without the optimizing compiler the JVM keeps 48 MB of compiled code by default. The third run of
a session fills that. Code in use is then discarded and compiled again: a run of 3 000 records took
24 to 33 CPU-seconds instead of 14.5."""
LONG_JVM: Final = "-XX:+UseParallelGC -XX:CompileThresholdScaling=4 -XX:MetaspaceSize=256m"
"""Records become garbage as soon as they are hashed. Compared with the JVM's default (G1), the
parallel collector saved a third of the CPU of reading and staging 2.4 million records. The query
compiler is called often enough to be optimized itself, which never pays. With four times higher
thresholds the third warm run of the comparison spent 2.2 CPU-seconds on that instead of 3.6. The
room for classes begins with 21 MB by default, which cost five full collections in one run."""
SMALL_RECORDS: Final = 20_000
SMALL: Final[Mapping[str, str]] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.defaultSizeInBytes": "1",
    "spark.sql.maxSinglePartitionBytes": "9223372036854775807b",
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.ui.explainMode": "simple",
}
"""Below that number of records a query costs far more than its rows: no statistics, no broadcast,
no second partition and no generated code pay for themselves. Spark shuffles two large single
partitions before it joins them, and by default it takes all rows in memory for huge."""
COMPILED_KEPT: Final = {"spark.sql.codegen.cache.maxEntries": "5000"}
"""A run compiles more than the 100 generated classes that Spark keeps by default. The next run of
an audit loop would compile all of them again and wait for the JVM to optimize them. The setting
takes effect only at the start of the JVM or of a Spark Connect server."""
LOCAL_ONLY: Final = ("spark.driver.host", "spark.driver.bindAddress")
"""Settings for a driver that is its own executor; wrong for a cluster."""
REMOTE_RETRIES: Final = 5
"""Retries of a call to Spark Connect, about 17 s; PySpark's default of 15 takes ten minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """Where Spark runs and with which settings; ``extra`` wins over our settings."""

    master: str
    jars_dir: Path
    log_file: Path
    expected_records: int = 0
    extra: Mapping[str, str] = field(default_factory=dict)
    remote: str | None = None
    """``sc://…``: a Spark Connect server that replaces the master."""

    def extra_texts(self) -> dict[str, str]:
        """Return the operator's settings as texts."""
        return {name: str(text) for name, text in self.extra.items()}


@contextmanager
def spark_session(settings: SessionSettings) -> Iterator[SparkSession]:
    """Open a session and stop it at the end.

    Raises ConfigurationError if a jar or the client of Spark Connect is missing, if Spark does not
    start, or if a Spark Connect server refuses a setting; SparkFailure if that server does not
    answer.
    """
    remote = settings.remote
    session = _own_session(settings) if remote is None else _remote_session(remote, settings)
    try:
        yield session
    finally:
        session.stop()


def _own_session(settings: SessionSettings) -> SparkSession:
    jars = ",".join(required_jars(settings.jars_dir))
    settings.log_file.parent.mkdir(parents=True, exist_ok=True)
    remove_at_exit()
    interrupt = signal.getsignal(signal.SIGINT)
    with launching(settings.log_file, local=is_local(settings.master)):
        builder = SparkSession.Builder().master(settings.master).config("spark.jars", jars)
        for name, text in session_settings(settings).items():
            builder = builder.config(name, text)
        session = builder.getOrCreate()
    if threading.current_thread() is threading.main_thread():
        # PySpark's own handler calls the JVM within a call under way, and both fail.
        signal.signal(signal.SIGINT, interrupt)
    logging.getLogger().addFilter(_no_py4j_interrupt)
    # What it logs it raises, too. SIGTERM within a call would show a stack trace.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    return session


def _no_py4j_interrupt(record: logging.LogRecord) -> bool:
    """Leave out the stack trace of an interrupt, which Py4J raises as well."""
    return record.msg != "KeyboardInterrupt while sending command."


def _remote_session(remote: str, settings: SessionSettings) -> SparkSession:
    """Open a session on a running server; only the settings of a session are sent.

    The address may contain a token, so no message repeats it.
    """
    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy

        session: Any = SparkSession.Builder().remote(remote).create()
    except ImportError as error:
        raise ConfigurationError(f"Spark Connect needs its client: {error}") from None
    except (PySparkRuntimeError, PySparkValueError):
        raise ConfigurationError(
            "OUTBOX_RECONCILE_SPARK_REMOTE is not the address of a Spark Connect server (sc://HOST:15002)"
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
            f"OUTBOX_RECONCILE_SPARK_CONF: {name} can only be set on the Spark Connect server"
        ) from None
    except RetriesExceeded:
        session.client.close()
        raise SparkFailure("Spark Connect: the server does not answer", unreachable=True) from None


def is_local(master: str) -> bool:
    """Whether the driver is its own executor."""
    return master.startswith("local")


def required_jars(jars_dir: Path) -> tuple[str, ...]:
    """Return the paths of all jars. Raises ConfigurationError that names the first missing one."""
    for name in JARS:
        if not (jars_dir / name).is_file():
            raise ConfigurationError(f"{name} is not in {jars_dir}; `make setup` fetches it")
    return tuple(str((jars_dir / name).resolve()) for name in JARS)


def session_settings(settings: SessionSettings) -> dict[str, str]:
    """Return the session's configuration: our settings, Python's path, the operator's settings."""
    ours = {**SETTINGS, **COMPILED_KEPT}
    if not is_local(settings.master):
        ours = {name: text for name, text in ours.items() if name not in LOCAL_ONLY}
    else:
        quick = settings.expected_records < QUICK_RECORDS
        ours["spark.driver.extraJavaOptions"] = QUICK_JVM if quick else LONG_JVM
        ours |= SMALL if settings.expected_records < SMALL_RECORDS else {}
    ours["spark.pyspark.python"] = sys.executable
    ours["spark.pyspark.driver.python"] = sys.executable
    return ours | settings.extra_texts()
