"""What a run leaves open for the next run: half ids with their rows, and findings."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.messages.message_id import HalfId
from outbox.reconciliation.run import CarriedRow
from spark.columns import schemas
from spark.columns.frames import Frames
from spark.columns.segments import IN_FLIGHT
from spark.cut.carry_over import COMMIT, JSON_OPTIONS, LISTING, RECORD
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause

FINDING: Final = "finding"
"""Side of a carried finding."""
MOST_ROWS: Final = 250_000
"""Above this number of rows nothing is carried, and the next run reads everything."""
CUT_COLUMNS: Final = {*schemas.SHARD_CUTS.names} - {"shard"}
DERIVED: Final = {"carried", "standing", "ahead", "rank", "slot", *CUT_COLUMNS}
"""Columns that each run computes again."""
TIMES: Final = ("decided_at", "record_time")


def open_half_ids(
    unsettled: DataFrame,
    retired_below: HalfId,
    expired: Sequence[HalfId],
    kept_below: Collection[HalfId] = (),
) -> DataFrame:
    """Return the half ids for the next run, without those that neither store keeps any more."""
    rows = [{"half_id": each} for each in expired]
    dropped = schemas.frame_of(unsettled.sparkSession, rows, schemas.HALF_IDS)
    kept = F.col("half_id").isin(*kept_below) | (F.col("half_id") >= retired_below)
    return unsettled.where(kept).select("half_id").join(dropped, "half_id", "left_anti")


def carried_rows(
    open_ids: DataFrame | None, frames: Frames, lasting: Collection[Finding], opened: int = 0
) -> tuple[CarriedRow, ...] | None:
    """Return the rows of these half ids, and the findings; None if that is too much to carry.

    The next run reads commits in flight again, so they are not carried. ``open_ids`` is None where
    nothing is open; at least ``opened`` messages are, each with a row or more.
    """
    most = MOST_ROWS - len(lasting)
    if most < 0 or opened > most:
        return None
    found = [] if open_ids is None else _open_rows(open_ids, frames).limit(most + 1).collect()
    if len(found) > most:
        return None
    return (*(CarriedRow(*row) for row in found), *map(finding_row, lasting))


def _open_rows(open_ids: DataFrame, frames: Frames) -> DataFrame:
    sides = {
        COMMIT: frames.commits.where(f"standing <> '{IN_FLIGHT}'"),
        RECORD: frames.records,
        LISTING: frames.listings,
    }
    rows = {side: _as_rows(side, frame, open_ids) for side, frame in sides.items()}
    # Each run reads the last known manifests again, with what it has carried of them.
    rows[LISTING] = rows[LISTING].distinct()
    return reduce(DataFrame.union, rows.values())


def carried_findings(rows: Iterable[CarriedRow]) -> Iterator[Finding]:
    """Return the findings that stay open although later runs do not see them."""
    for row in rows:
        if row.side == FINDING:
            facts = json.loads(row.facts)
            times = {name: facts[name] and datetime.fromisoformat(facts[name]) for name in TIMES}
            named = {"cause": Cause(facts["cause"])}
            position = facts["position"] and tuple(facts["position"])
            yield Finding(**{**facts, **times, **named, "position": position})


def finding_row(finding: Finding) -> CarriedRow:
    """Return a finding as it is stored."""
    facts = {each.name: getattr(finding, each.name) for each in fields(finding)}
    del facts["stored_id"]
    text = json.dumps({**facts, "key": None}, default=str)
    return CarriedRow(FINDING, finding.half_id, text)


def _as_rows(side: str, frame: DataFrame, open_ids: DataFrame) -> DataFrame:
    columns = [name for name in frame.columns if name not in DERIVED]
    return frame.join(open_ids, "half_id", "left_semi").select(
        F.lit(side).alias("side"),
        "half_id",
        F.to_json(F.struct(*columns), JSON_OPTIONS).alias("facts"),
    )
