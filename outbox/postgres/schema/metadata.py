"""METADATA with every table of the service; Alembic compares it with a database."""

from __future__ import annotations

from outbox.postgres.schema import check_tables, operator_tables, reconciliation_tables
from outbox.postgres.schema.tables import METADATA

__all__ = ["METADATA", "check_tables", "operator_tables", "reconciliation_tables"]
