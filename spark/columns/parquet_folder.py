"""A folder of Parquet files that the driver writes itself: what a run reports, without a query."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import parquet


@dataclass(slots=True)
class ParquetFolder:
    """A folder to which tables of one schema are added, one file each."""

    path: Path
    files: int = 0

    @classmethod
    def emptied(cls, path: Path) -> ParquetFolder:
        """Return the folder without the files that an earlier run of the same id left."""
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return cls(path)

    def add(self, table: pa.Table) -> None:
        """Write one more file. Raises OSError."""
        parquet.write_table(table, self.path / f"part-{self.files:05}.parquet", compression="zstd")
        self.files += 1
