"""Looks for a few messages in a frame of very many."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame

from outbox.messages.message_id import HalfId
from spark.columns import schemas


def half_ids_in(rows: DataFrame, half_ids: Collection[HalfId]) -> set[HalfId]:
    """Return the messages that have a row; the ids are sent to the rows, and no row is shuffled."""
    if not half_ids:
        return set()
    asked = [{"half_id": each} for each in half_ids]
    ids = schemas.frame_of(rows.sparkSession, asked, schemas.HALF_IDS)
    found = rows.select("half_id").join(ids, "half_id", "left_semi").collect()
    return {HalfId(row["half_id"]) for row in found}
