"""The reconciliation's own tables, in the same METADATA as the service's.

Whoever takes METADATA from here has every table. The reports alone are large; they are kept for the
last runs only.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Boolean, Column, DateTime, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from outbox.storage.tables import METADATA

__all__ = ["METADATA", "reconciliation_finding", "reconciliation_report", "reconciliation_run"]

_TIME: Final = DateTime(timezone=True)

reconciliation_run = Table(
    "reconciliation_run",
    METADATA,
    Column("run_id", Text, primary_key=True),
    Column("previous_run_id", Text),
    Column("mode", Text, nullable=False),
    Column("started_at", _TIME, nullable=False),
    Column("cut_at", _TIME, nullable=False),
    Column("finished_at", _TIME, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("sentence", Text, nullable=False),
    Column("complete", Boolean, nullable=False),
    Column("plan", JSONB, nullable=False),
    Column("counts", JSONB, nullable=False),
    Column("totals", JSONB, nullable=False),
    Column("timings", JSONB, nullable=False),
)

reconciliation_finding = Table(
    "reconciliation_finding",
    METADATA,
    Column("finding_id", Text, primary_key=True),
    Column("first_run_id", Text, nullable=False),
    Column("last_run_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("class", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("half_id", BigInteger),
    Column("topic", Text),
    Column("detail", JSONB, nullable=False),
    Column("found_at", _TIME, nullable=False),
    Column("updated_at", _TIME, nullable=False),
    Column("accepted_until", _TIME),
)

reconciliation_report = Table(
    "reconciliation_report",
    METADATA,
    Column("run_id", Text, primary_key=True),
    Column("format", Text, primary_key=True),
    needed("body", Text),
)

reconciliation_cut = Table(
    "reconciliation_cut",
    METADATA,
    Column("source", Text, primary_key=True),
    Column("run_id", Text, nullable=False),
    Column("cut", JSONB),
)

reconciliation_carry = Table(
    "reconciliation_carry",
    METADATA,
    Column("side", Text, nullable=False),
    Column("half_id", BigInteger),
    Column("facts", Text, nullable=False),
)
