"""`python -m spark.jvm.class_archive_builder`: writes the class-data archive of Spark's JVM."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from outbox.errors import ConfigurationError, OutboxError
from spark.columns.schemas import HALF_IDS, frame_of
from spark.columns.staging import IN_MEMORY, stage_counted, stage_frame
from spark.jvm.class_archive import archive_path, recording_options
from spark.jvm.session import (
    QUICK_JVM,
    RUNTIME_JARS,
    SessionSettings,
    required_jars,
    spark_session,
)
from spark.jvm.spark_errors import exit_code_of

PATIENCE_SECONDS = 300.0


def main() -> int:
    """Write the archive beside the jars of ``make setup``; exit 2 without Java or a jar."""
    try:
        record(RUNTIME_JARS)
    except OutboxError as error:
        print(f"class_archive_builder: {error}", file=sys.stderr)  # noqa: T201
        return exit_code_of(error)
    return 0


def record(folder: Path) -> Path:
    """Load the classes of an audit, write the archive and return its path.

    Raises ConfigurationError if Spark does not start, or if Java writes no archive in time.
    """
    archive = archive_path(folder)
    if archive is None:
        raise ConfigurationError("Java 17 or newer (no `java` on the PATH)")
    with TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / archive.name
        options = f"{QUICK_JVM} {recording_options(made)}"
        settings = SessionSettings(
            master="local[2]",
            jars_dir=folder,
            log_file=Path(scratch) / "spark.log",
            extra={"spark.driver.extraJavaOptions": options},
        )
        with spark_session(settings) as session:
            _exercise(session, f"file://{scratch}")
            _exercise(session, IN_MEMORY)
            _load_connectors(session, folder)
        if not _end_jvm():
            late = f"Java has not written the class archive within {PATIENCE_SECONDS:.0f} s"
            raise ConfigurationError(f"{late}: this machine is busy")
        if not made.is_file():
            raise ConfigurationError(f"Java wrote no class archive; is {folder} full?")
        for stale in folder.glob("spark-*.jsa"):
            stale.unlink()
        made.replace(archive)
    return archive


def _exercise(session: SparkSession, uri: str) -> None:
    """Run the kinds of queries of an audit: stage, explode, rank, aggregate, join, collect."""
    rows, _ = stage_counted(_rows(session), f"{uri}/rows", rows=F.count("*"))
    shard = Window.partitionBy("shard").orderBy("slot")
    ranked = rows.withColumn("before", F.coalesce(F.sum("slot").over(shard), F.lit(0)))
    opened = ranked.select("*", F.posexplode(F.slice("ids", 1, 2)).alias("place", "half_id"))
    folded = opened.groupBy("shard", F.shiftright("slot", 4).alias("bucket")).agg(
        F.count("*").alias("messages"),
        F.bit_xor(F.xxhash64("digest", "slot")).alias("mixed"),
        F.max_by("half_id", "slot").alias("last"),
    )
    both = folded.alias("a").join(folded.alias("b"), ["shard", "bucket"], "full_outer")
    stage_frame(both.select("shard", "bucket", "a.mixed"), f"{uri}/folded").count()
    cuts = rows.groupBy("shard").agg(F.max("at").alias("cut_at"))
    beside = opened.join(F.broadcast(cuts), "shard", "left")
    found = beside.where("cut_at IS NOT NULL").orderBy("half_id").limit(50)
    list(found.unionByName(found.limit(1)).toLocalIterator(prefetchPartitions=True))
    found.groupBy("shard").agg(F.sort_array(F.collect_list(F.struct("slot", "text")))).collect()
    asked = frame_of(session, [{"half_id": 1}], HALF_IDS)
    opened.join(asked, "half_id", "left_semi").toArrow()
    rows.limit(0).isEmpty()


def _load_connectors(session: SparkSession, folder: Path) -> None:
    """Load the classes of the connectors, which no query without their stores would load."""
    jvm: Any = session._jvm
    loader = jvm.java.lang.ClassLoader.getSystemClassLoader()
    for jar in required_jars(folder):
        with ZipFile(jar) as opened:
            names = [each for each in opened.namelist() if each.endswith(".class")]
        for name in names:
            # Some classes extend what is not in the class path, and an audit loads none of them.
            with suppress(Py4JJavaError):
                loader.loadClass(name.removesuffix(".class").replace("/", "."))
    with suppress(Py4JJavaError):
        session.read.jdbc("jdbc:postgresql://127.0.0.1:1/none", "none")


def _rows(session: SparkSession) -> DataFrame:
    number = F.col("id")
    return session.range(1000).select(
        (number % 16).cast("int").alias("shard"),
        number.alias("slot"),
        F.xxhash64(number).alias("digest"),
        F.array(number, number + 1).alias("ids"),
        F.timestamp_seconds(number).alias("at"),
        F.hex(number).alias("text"),
        F.substring(F.encode(F.hex(number), "utf-8"), 1, 8).alias("body"),
    )


def _end_jvm() -> bool:
    """End the JVM, which then writes the archive; return whether it has ended by itself."""
    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    return ends_within(gateway.proc, PATIENCE_SECONDS)


def ends_within(process: Popen[bytes], seconds: float) -> bool:
    """Wait for a process; kill it after that time. Return whether it has ended by itself."""
    try:
        process.wait(timeout=seconds)
    except TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
