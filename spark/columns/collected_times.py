"""Times that Spark returns to the driver.

PySpark gives them in the local time of the process, without a zone. Arrow gives them in UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime


def in_utc(collected: datetime | None) -> datetime | None:
    """Return a collected time with its zone, UTC."""
    return None if collected is None else collected.astimezone(UTC)


def utc_text(collected: datetime) -> str:
    """Return a collected time as ISO 8601 text with its zone, UTC."""
    return collected.astimezone(UTC).isoformat()
