"""What others leave to us of a shared server: connections, vacuums, transaction ids. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from outbox.operators.health_check import HealthCheck, HealthStatus, health_check

OLD_AGE: Final = 1_000_000_000
"""Five times the age at which autovacuum begins whatever is set for a table."""
LAST_AGE: Final = 2_000_000_000
"""PostgreSQL takes no more transactions 3 million before 2^31."""
OLD_READER: Final = 5_000_000
"""Transactions of hours. Each change of a row that nobody may remove makes the next look at it
slower: 0.1 ms after a thousand changes, and a relay changes its row several times a second."""
FEW_CONNECTIONS: Final = 5
UPKEEP_SETTINGS: Final = {
    "autovacuum": "without it our queues and positions grow, and reads of them get slower",
    "track_counts": "without it autovacuum does nothing",
    "track_activities": "without it no checker sees that a process of ours is frozen, and ends it",
}
"""What a server must have on, and why."""


def setting_health(server: Mapping[str, Any]) -> Iterator[HealthCheck]:
    """Check the settings without which our tables and sessions are not looked after."""
    for name, why in UPKEEP_SETTINGS.items():
        good = server[name] == "on"
        detail = "on" if good else f"{server[name]}: {why}"
        yield health_check(name, good, detail, HealthStatus.WARNING)


def age_health(database: str, ids: str, age: int) -> HealthCheck:
    """Check that no database of the server is near the age at which PostgreSQL takes no writes."""
    detail = f"the oldest of database {database} is {age / 1e6:.0f} million {ids} old"
    if age < OLD_AGE:
        return health_check("transaction ids", True, detail)
    detail += (
        ", and at 2 144 million PostgreSQL takes no more writes: see that autovacuum runs, drop old"
        " replication slots, end old transactions, and run VACUUM (FREEZE) in database "
        f"{database}"
    )
    verdict = HealthStatus.WARNING if age < LAST_AGE else HealthStatus.FAILED
    return health_check("transaction ids", False, detail, verdict)


def reader_health(reader: Mapping[str, Any] | None) -> HealthCheck:
    """Check that vacuums may remove old rows; ``reader`` may see the oldest ones."""
    if reader is None or reader["age"] < OLD_READER:
        return health_check("old rows", True, "nobody keeps them for long")
    detail = (
        f"{reader['holder']} keeps what has changed within the last {reader['age'] / 1e6:.0f}"
        " million transactions from every vacuum: checks and publishing get slower, and tables"
        " grow. End the transaction, or drop the slot with pg_drop_replication_slot"
    )
    command = f"""psql "$OUTBOX_DATABASE_URL" -xc '{reader["command"]}'"""
    return health_check("old rows", False, detail, HealthStatus.WARNING, command)


def connection_health(place: str, used: int, most: int) -> HealthCheck:
    """Check that our programs may open sessions; ``place`` has the tightest limit."""
    enough = most - used >= FEW_CONNECTIONS
    detail = f"{place} uses {used} of {most}"
    if not enough:
        detail += (
            ": our programs open sessions again within an hour, and stand still without them. Raise"
            " the limit, see in pg_stat_activity who has them, and from PostgreSQL 16 on reserve"
            " some (reserved_connections, GRANT pg_use_reserved_connections)"
        )
    return health_check("connections", enough, detail, HealthStatus.WARNING)
