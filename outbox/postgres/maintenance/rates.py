"""What the last hour did by minute, and the checks of the last day by outcome.

Bounded samples of the logs are read, never their history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from psycopg.rows import dict_row

from outbox.checks.check_round import Outcome
from outbox.operators.rates import (
    LIVE_MINUTES,
    MINUTES,
    LogSlice,
    OutcomeCount,
    Rates,
    RateSeries,
    series_of,
)
from outbox.postgres.sessions.key_order import SQL as KEY_ORDER
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import Connection

SQL: Final = load(__name__)
SLICES: Final = 60
"""Slices of a log: of the halves, and of each shard's commits and batches."""
ROWS: Final = 100
"""The most halves that are read of a slice."""
FLUSHES: Final = 10
"""The most commits or batches that are read of a slice; each has up to some thousand messages."""
CHECKS: Final = 5_000
_ENTRIES: Final = SQL["entries"]
LOGS: Final = {
    "prepared": SQL["prepared"].format(slices=SQL["slices"]),
    "committed": _ENTRIES.format(log="commit_log", xid="xid", at="committed_at", of="half_ids"),
    "published": _ENTRIES.format(
        log="publication_log", xid="to_xid", at="published_at", of="partitions"
    ),
}
"""The statement that samples each log."""
OUTCOMES: Final = SQL["outcomes"].format(slices=SQL["slices"])


def read_rates(connection: Connection) -> Rates:
    """Read the last hour in one transaction."""
    with connection.transaction(), connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(KEY_ORDER["in_key_order"])
        [hour] = cursor.execute(SQL["hour"]).fetchall()
        asked = {**hour, "slices": SLICES, "rows": ROWS, "flushes": FLUSHES, "checks": CHECKS}
        logs = [
            series_of(name, (LogSlice(**row) for row in cursor.execute(statement, asked)))
            for name, statement in LOGS.items()
        ]
        checks = cursor.execute(SQL["checked"], asked).fetchall()
        day = cursor.execute(OUTCOMES, {**asked, "since": hour["day"]}).fetchall()
    return Rates(
        begins_at=hour["since"],
        series=(*logs, _checked(checks)),
        outcomes=tuple(_outcomes(checks, day)),
    )


def _checked(rows: Sequence[Mapping[str, Any]]) -> RateSeries:
    """Return the checks of each minute; they are exact as far back as they were looked at."""
    counts = [0] * MINUTES
    for row in rows:
        if row["minute"] is not None:
            counts[min(row["minute"], MINUTES - 1)] += row["checks"]
    cut_off = rows[0]["looked"] == CHECKS
    back_to = rows[0]["back_to"] if cut_off else None
    return RateSeries(name="checked", counts=tuple(counts), searched_back_to=back_to)


def _outcomes(
    checks: Sequence[Mapping[str, Any]], day: Sequence[Mapping[str, Any]]
) -> Iterator[OutcomeCount]:
    """Return the counts of each outcome that there is, in the order of their definition."""
    live: Counter[str] = Counter()
    for row in checks:
        if row["minute"] is not None and row["minute"] >= MINUTES - LIVE_MINUTES:
            live[row["outcome"]] += row["checks"]
    of_day = {row["outcome"]: row for row in day}
    for outcome in Outcome:
        if live[outcome] or outcome in of_day:
            sampled = of_day.get(outcome, {"checks": 0, "estimated": False})
            yield OutcomeCount(
                outcome=outcome,
                live=live[outcome],
                day=max(sampled["checks"], live[outcome]),
                estimated=sampled["estimated"],
            )
