"""A separate process that runs the reads of an audit on Spark Connect and prints the results.

PySpark supports either Spark Connect or a JVM in one process, not both.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

from outbox.errors import ConfigurationError
from outbox.reconciliation.log import Partition
from outbox.reconciliation.snapshot import JdbcAddress
from spark.columns import schemas
from spark.columns.staging import stage_frame
from spark.cut.cut_plan import Range
from spark.cut.sources import Sources
from spark.jvm.kafka_options import kafka_options
from spark.jvm.session import SessionSettings, spark_session
from tests.spark.jvm.fixtures_clusters import SMALL_JOB

TARGETS = ({"topic": "points", "target": 1.5, "allowed": None}, {"topic": "bills", "target": 2.0})


def main(address: str, folder: Path) -> None:
    """Print as JSON what came back from the server."""
    with spark_session(_settings(address, folder, SMALL_JOB)) as session:
        nothing = schemas.frame_of(session, [], schemas.CARRIED)
        frame = schemas.frame_of(session, TARGETS, schemas.LATENCY_TARGETS)
        kept = stage_frame(frame, f"{folder.as_uri()}/targets").coalesce(1)
        nowhere = JdbcAddress(url="", user="", password="")
        options = kafka_options("127.0.0.1:1", {})
        sources = Sources(spark_session=session, kafka_options=options, jdbc=nowhere)
        read = Range(partition=Partition("points", 0), start=0, end=9)
        seen: dict[str, Any] = {
            "version": session.version,
            "nothing": nothing.isEmpty(),
            "collected": kept.agg(F.sum("target").alias("sum")).collect()[0].asDict(),
            "iterated": [row.asDict() for row in kept.toLocalIterator(prefetchPartitions=True)],
            "records": sources.read_records([read]).columns,
        }
    print(json.dumps(seen | {"refused": _refused(address, folder)}))  # noqa: T201


def _refused(address: str, folder: Path) -> str:
    try:
        with spark_session(_settings(address, folder, {"spark.executor.memory": "1g"})):
            return ""
    except ConfigurationError as error:
        return str(error)


def _settings(address: str, folder: Path, conf: dict[str, str]) -> SessionSettings:
    log = folder / "spark.log"
    return SessionSettings(master="", jars_dir=folder, log_file=log, remote=address, extra=conf)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
