"""A task that stages rows needs no more memory for many rows than for some."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession

from spark.columns.staging import stage_frame
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = [*ON_SPARK, pytest.mark.deep]

HASHES: Final = ("xxhash64(id) one", "xxhash64(id, 1) two", "xxhash64(id, 2) three")
ROWS: Final = 2_000_000
"""48 MB of hashes, which cannot be compressed, in one task."""
MOST_BYTES: Final = 20 << 20
"""A row group, and the pages by which it may be larger."""


def test_a_staged_file_is_written_in_row_groups_of_a_fixed_size(
    session: SparkSession, tmp_path: Path
) -> None:
    rows = session.range(0, ROWS, 1, numPartitions=1).selectExpr(*HASHES)
    assert stage_frame(rows, f"{tmp_path}/staged").count() == ROWS
    files = [pq.ParquetFile(each).metadata for each in tmp_path.glob("staged/*.parquet")]
    sizes = [
        each.row_group(n).total_byte_size for each in files for n in range(each.num_row_groups)
    ]
    assert max(sizes) < MOST_BYTES
