"""The two ways to run: a small run in one partition in memory, any other distributed and on disk.

Each query of a small run costs far more than its rows. So its rows are kept in one partition, where
joins and windows need no shuffle, and no code is generated for them. The queries are the same. As
each of them keeps one core busy, two steps that do not need each other run at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark.columns.staging import IN_MEMORY

First = TypeVar("First")
Second = TypeVar("Second")

SMALL_ROWS: Final = 20_000
"""Up to this number of records and of commits a run is small."""
SMALL_RUN: Final[Mapping[str, str]] = {
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
"""A plan that fits small data is known before the query starts: no statistics, no broadcast and no
generated code pay for themselves. Spark shuffles two large single partitions before it joins them,
and by default it takes all rows in memory for huge. The text of a plan that it keeps for its pages,
which are off, is the short one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSize:
    """Chooses the way of a run by its number of rows, and sets the session accordingly."""

    spark_session: SparkSession
    stage_uri: str
    """Where a run that is not small stages its rows."""
    most_rows: int = SMALL_ROWS
    settings: Mapping[str, str] = field(default_factory=lambda: SMALL_RUN)
    """The settings of a small run."""
    usual: Mapping[str, str] = field(default_factory=dict)
    """The same settings as they were before the run."""

    def stage_for(self, rows: int) -> str:
        """Set the session for this many rows, and return where they are staged."""
        small = 0 < self.most_rows >= rows
        for name, text in (self.settings if small else self.usual).items():
            self.spark_session.conf.set(name, text)
        return IN_MEMORY if small else self.stage_uri


@contextmanager
def sized_run(
    spark_session: SparkSession, settings: Mapping[str, str], stage_uri: str, most_rows: int
) -> Iterator[RunSize]:
    """Yield the choice for one run; at its end the session has its usual settings again."""
    usual = {name: str(spark_session.conf.get(name)) for name in settings}
    try:
        yield RunSize(
            spark_session=spark_session,
            stage_uri=stage_uri,
            most_rows=most_rows,
            settings=settings,
            usual=usual,
        )
    finally:
        # A session that has just failed keeps its error: no later run uses it.
        with suppress(Py4JError, PySparkException):
            for name, text in usual.items():
                spark_session.conf.set(name, text)


def both(
    stage_uri: str, first: Callable[[], First], second: Callable[[], Second]
) -> tuple[First, Second]:
    """Do both: a small run at the same time, any other run one after the other.

    Neither is under way any more when this returns or raises. If both fail, the first one's error
    is raised.
    """
    if stage_uri != IN_MEMORY:
        return first(), second()
    with ThreadPoolExecutor(max_workers=1) as beside:
        other = beside.submit(second)
        done = first()
    return done, other.result()
