"""The tables of the reconciliation, in the same METADATA as those of the service.

Only the reports are large; they are kept only for the last runs.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from outbox.postgres.schema.tables import METADATA, TIME, needed

reconciliation_run = Table(
    "reconciliation_run",
    METADATA,
    Column("run_id", Text, primary_key=True),
    Column("previous_run_id", Text),
    needed("mode", Text),
    needed("started_at", TIME),
    needed("cut_at", TIME),
    needed("finished_at", TIME),
    needed("verdict", Text),
    needed("sentence", Text),
    needed("plan", JSONB),
    needed("totals", JSONB),
)

reconciliation_finding = Table(
    "reconciliation_finding",
    METADATA,
    Column("finding_id", Text, primary_key=True),
    needed("first_run_id", Text),
    needed("last_run_id", Text),
    needed("status", Text),
    needed("kind", Text),
    needed("class", Text),
    needed("detail", Text),
    needed("severity", Text),
    Column("half_id", BigInteger),
    Column("topic", Text),
    needed("evidence", JSONB),
    needed("found_at", TIME),
    needed("updated_at", TIME),
    Column("accepted_until", TIME),
)

reconciliation_finding_event = Table(
    "reconciliation_finding_event",
    METADATA,
    Column("id", BigInteger, primary_key=True),
    needed("finding_id", Text),
    needed("happened_at", TIME),
    needed("event", Text),
    needed("class", Text),
    needed("detail", Text),
    needed("severity", Text),
    needed("status", Text),
    Column("run_id", Text),
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
