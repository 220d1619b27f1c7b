"""How fast does PostgreSQL alone store such rows by COPY?"""

from __future__ import annotations

import time
from typing import Any

import psycopg

VALUE = b"x" * 256


def rate(database_url: str, rows: int, batch: int) -> dict[str, Any]:
    """COPY ``rows`` rows of 256 bytes in transactions of ``batch``; return the rate."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS raw_copy")
        connection.execute(
            "CREATE TABLE raw_copy (id int8 PRIMARY KEY, at timestamptz DEFAULT now(), value bytea)"
        )
        began = time.perf_counter()
        for first in range(0, rows, batch):
            _copy(connection, range(first, first + batch))
        seconds = time.perf_counter() - began
        connection.execute("DROP TABLE raw_copy")
    return {"rows": rows, "batch": batch, "per_second": round(rows / seconds)}


def _copy(connection: psycopg.Connection[Any], ids: range) -> None:
    statement = "COPY raw_copy (id, value) FROM STDIN (FORMAT BINARY)"
    with connection.transaction(), connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(["int8", "bytea"])
        for row in ids:
            copy.write_row((row, VALUE))
