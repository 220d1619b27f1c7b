"""The queries of the checks: Spark SQL in the ``.sql`` files of this folder."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from pyspark.sql import DataFrame


def query(name: str, **given: Any) -> DataFrame:
    """Return what a query selects from the given ``{frames}``, with the other ``:values``."""
    text = (files("spark.checks") / f"{name}.sql").read_text("utf-8")
    frames = {k: each for k, each in given.items() if isinstance(each, DataFrame)}
    values = {k: each for k, each in given.items() if k not in frames}
    return next(iter(frames.values())).sparkSession.sql(text, values, **frames)
