"""What a run leaves open, by name, and what it takes over from the run before.

Carried rows meet the newly read ones as if they had been read with them, so that every message is
judged by all that was ever seen of it. They are slim: ids, places and digests, no key, no value.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from outbox.messages.message_id import HalfId
from outbox.reconciliation.stored_run import CarriedRow
from spark.columns import schemas
from spark.columns.frames import Frames
from spark.columns.segments import IN_FLIGHT
from spark.cut.cut_plan import LogCut
from spark.findings.finding import Finding
from spark.findings.finding_class import FindingClass

COMMIT: Final = "commit"
RECORD: Final = "record"
LISTING: Final = "listing"
FINDING: Final = "finding"
"""Sides of what is carried."""

MOST_ROWS: Final = 250_000
"""Beyond this nothing is carried, and the next run reads everything."""
CUT: Final = {*schemas.SHARD_CUTS.names} - {"shard"}
DERIVED: Final = {"carried", "standing", "ahead", "rank", "slot", *CUT}
"""Columns that each run makes anew."""
TIMES: Final = ("decided_at", "record_time")
JSON: Final = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What the run before left open, as frames of the same columns as what is read anew."""

    spark_session: SparkSession
    rows: Sequence[CarriedRow] = ()
    """No rows is nothing to lay beside, at no cost."""

    def beside(self, fresh: DataFrame, side: str) -> DataFrame:
        """Return the newly read rows and those carried of the same kind, told apart."""
        told = fresh.withColumn("carried", F.lit(False))
        if not self.rows:
            return told
        return told.unionByName(self._frame(side, fresh.schema).withColumn("carried", F.lit(True)))

    def _frame(self, side: str, schema: StructType) -> DataFrame:
        rows = [each._asdict() for each in self.rows if each.side == side]
        given = schemas.frame_of(self.spark_session, rows, schemas.CARRIED)
        return given.select(F.from_json("facts", schema, JSON).alias("row")).select("row.*")


def unexpired(records: DataFrame, log: LogCut) -> DataFrame:
    """Return the records without the carried ones that the log no longer keeps."""
    rows = [
        {"topic": each.partition.topic, "partition": each.partition.number, "start": each.start}
        for each in log.records
    ]
    starts = schemas.frame_of(records.sparkSession, rows, schemas.STARTS)
    gone = F.col("carried") & (F.col("offset") < F.coalesce("start", F.lit(0)))
    kept = records.join(F.broadcast(starts), ["topic", "partition"], "left").where(~gone)
    return kept.drop("start")


def kept_open(unsettled: DataFrame, retired_below: HalfId, expired: Sequence[HalfId]) -> DataFrame:
    """Return the half ids that the next run must know of; what neither store keeps is let go."""
    rows = [{"half_id": each} for each in expired]
    gone = schemas.frame_of(unsettled.sparkSession, rows, schemas.HALF_IDS)
    kept = unsettled.where(F.col("half_id") >= retired_below).select("half_id")
    return kept.join(gone, "half_id", "left_anti")


def carried_rows(
    open_ids: DataFrame, frames: Frames, lasting: Collection[Finding]
) -> tuple[CarriedRow, ...] | None:
    """Return what is known of these half ids, and the findings; None if it is too much to carry.

    Commits in flight are read again by the next run, so they are not carried.
    """
    most = MOST_ROWS - len(lasting)
    if most < 0:
        return None
    sides = {
        COMMIT: frames.commits.where(F.col("standing") != IN_FLIGHT),
        RECORD: frames.records,
        LISTING: frames.listings,
    }
    rows = [_as_rows(side, frame, open_ids) for side, frame in sides.items()]
    found = [] if open_ids.isEmpty() else reduce(DataFrame.union, rows).limit(most + 1).collect()
    if len(found) > most:
        return None
    return (*(CarriedRow(*row) for row in found), *map(_of_finding, lasting))


def always(lasting: Iterable[Finding]) -> tuple[CarriedRow, ...]:
    """Return those that a run without a cut to continue could not find again by reading all."""
    return tuple(_of_finding(each) for each in lasting if each.by_sha256)


def findings_of(rows: Iterable[CarriedRow]) -> Iterator[Finding]:
    """Return the findings that stay open although later runs do not see them."""
    for row in rows:
        if row.side == FINDING:
            facts = json.loads(row.facts)
            times = {name: facts[name] and datetime.fromisoformat(facts[name]) for name in TIMES}
            named = {"finding_class": FindingClass(facts["finding_class"])}
            position = facts["position"] and tuple(facts["position"])
            yield Finding(**{**facts, **times, **named, "position": position})


def _of_finding(finding: Finding) -> CarriedRow:
    """Return a finding as it is stored; versions before SHA-256 read all that names none of it."""
    facts = {each.name: getattr(finding, each.name) for each in fields(finding)}
    if not finding.by_sha256:
        del facts["by_sha256"]
    text = json.dumps({**facts, "key": None}, default=str)
    return CarriedRow(FINDING, finding.half_id, text)


def _as_rows(side: str, frame: DataFrame, open_ids: DataFrame) -> DataFrame:
    columns = [name for name in frame.columns if name not in DERIVED]
    return frame.join(open_ids, "half_id", "left_semi").select(
        F.lit(side).alias("side"), "half_id", F.to_json(F.struct(*columns), JSON).alias("facts")
    )
