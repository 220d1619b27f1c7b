"""The queries of the checks: Spark SQL in the ``.sql`` files of this folder."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from pyspark.sql import DataFrame


def query(name: str, **given: Any) -> DataFrame:
    """Return what a query selects from the given frames; other values are literals in its text."""
    text = (files("spark.checks") / f"{name}.sql").read_text("utf-8")
    frame = next(each for each in given.values() if isinstance(each, DataFrame))
    return frame.sparkSession.sql(text, **given)
