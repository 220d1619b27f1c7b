"""Finished reconciliations as the API, its metrics and operators read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from outbox.postgres.sessions.reads import rows_from
from outbox.postgres.sessions.statements import load
from outbox.reconciliation.finding import OpenFindingCount, TrackedFinding
from outbox.reconciliation.run import FinishedRun, LastRun, ReportFormat

Row = TypeVar("Row")

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool

SQL: Final = load(__name__)
EVENTS_SHOWN: Final = 50
"""The maximum number of changes that are shown of a finding: the last ones."""
NO_FILTER: Final = dict.fromkeys(("kind", "finding_class", "status", "topic"))


class PostgresReconciliationRuns:
    """The finished runs on a pool of connections. Methods raise DatabaseUnavailable."""

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool

    async def page(self, limit: int, after: str) -> Sequence[FinishedRun]:
        """Return runs, newest first, after the run with this id in the list; "": from the first."""
        asked = {"run_id": None, "after": after, "limit": limit}
        return await self._rows(FinishedRun, "runs", asked)

    async def get(self, run_id: str) -> FinishedRun | None:
        """Return one run, or None."""
        asked = {"run_id": run_id, "after": "", "limit": 1}
        return next(iter(await self._rows(FinishedRun, "runs", asked)), None)

    async def report(self, run_id: str, form: ReportFormat) -> str | None:
        """Return the text of a run's report, or None when it is not kept."""
        rows = await self._rows(dict, "report", {"run_id": run_id, "format": form.value})
        return rows[0]["body"] if rows else None

    async def findings(
        self, run_id: str, limit: int, after: str, **wanted: str | None
    ) -> Sequence[TrackedFinding]:
        """Return a run's findings above info with their current status, after the id ``after``.

        They come the worst first, then by id.

        ``wanted`` are values that a finding must have: its kind, finding_class (CLASS or
        CLASS/detail), status and topic.
        """
        asked = {"run_id": run_id, "limit": limit, "after": after, "events": EVENTS_SHOWN}
        return await self._rows(TrackedFinding, "findings", NO_FILTER | wanted | asked)

    async def last(self) -> LastRun | None:
        """Return the newest run as the metrics show it, or None before the first."""
        return next(iter(await self._rows(LastRun, "last", {})), None)

    async def open_findings(self) -> Sequence[OpenFindingCount]:
        """Count the open findings."""
        return await self._rows(OpenFindingCount, "open_findings", {})

    async def _rows(self, kind: type[Row], name: str, asked: dict[str, Any]) -> list[Row]:
        return [kind(**row) for row in await rows_from(self._pool, SQL[name], asked)]
