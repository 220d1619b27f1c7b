"""A folder of Parquet files that the driver writes itself: what a run reports, without a query."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import json as arrow_json
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

    def add(self, rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> None:
        """Write one more file, with the columns of the schema. Raises OSError."""
        table = _table([{name: each.get(name) for name in schema.names} for each in rows], schema)
        parquet.write_table(table, self.path / f"part-{self.files:05}.parquet", compression="zstd")
        self.files += 1


def _table(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return the rows as a table; Arrow would import pandas to read them as Python's values."""
    if not rows:
        return pa.Table.from_batches([], schema)
    text = "\n".join(json.dumps(each, default=datetime.isoformat) for each in rows).encode()
    return arrow_json.read_json(
        BytesIO(text),
        arrow_json.ReadOptions(block_size=len(text)),
        arrow_json.ParseOptions(explicit_schema=schema),
    )
