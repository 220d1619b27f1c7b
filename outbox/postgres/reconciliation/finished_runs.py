"""Finished reconciliations as the API and operators read them; see ReconciliationRuns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from psycopg.rows import dict_row

from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load
from outbox.reconciliation.finding import (
    FindingEvent,
    FindingFilter,
    FindingTotal,
    FindingTotals,
    OpenFindingCount,
    TrackedFinding,
)
from outbox.reconciliation.run import FinishedRun, MeasuredRun, ReportFormat, RunPosition

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool

SQL: Final = load(__name__)
EVENTS_SHOWN: Final = 50
"""The maximum number of changes that are shown of a finding: the last ones."""

COUNTED: Final = 10_000
"""The most findings of a run that are counted by kind, topic and hour."""
TOTALS: Final = 200
"""The most of these counts that are returned."""


class PostgresReconciliationRuns:
    """The ReconciliationRuns on a pool of connections."""

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool

    async def page(self, limit: int, before: RunPosition | None) -> Sequence[FinishedRun]:
        """Return runs, newest first; see ReconciliationRuns.page."""
        position = {"finished_at": None, "run_id": None} if before is None else before._asdict()
        rows = await self._rows("page", {"limit": limit, **position})
        return [finished_run(row) for row in rows]

    async def get(self, run_id: str) -> FinishedRun | None:
        """Return one run, or None; see ReconciliationRuns.get."""
        rows = await self._rows("get", {"run_id": run_id})
        return finished_run(rows[0]) if rows else None

    async def report(self, run_id: str, form: ReportFormat) -> str | None:
        """Return a kept report, or None; see ReconciliationRuns.report."""
        rows = await self._rows("report", {"run_id": run_id, "format": form.value})
        return rows[0]["body"] if rows else None

    async def findings(
        self, run_id: str, wanted: FindingFilter, limit: int, after: str
    ) -> Sequence[TrackedFinding]:
        """Return a run's findings by id; see ReconciliationRuns.findings."""
        asked = {
            "run_id": run_id,
            "kind": wanted.kind,
            "finding_class": wanted.finding_class,
            "status": wanted.status,
            "topic": wanted.topic,
            "hour": wanted.hour,
            "limit": limit,
            "after": after,
            "events": EVENTS_SHOWN,
        }
        return [_tracked_finding(row) for row in await self._rows("findings", asked)]

    async def totals(self, run_id: str) -> FindingTotals:
        """Count a run's findings; see ReconciliationRuns.totals."""
        asked = {"run_id": run_id, "most": COUNTED, "limit": TOTALS}
        rows = await self._rows("totals", asked)
        cut_off = [row.pop("cut_off") for row in rows]
        return FindingTotals([FindingTotal(**row) for row in rows], complete=not any(cut_off))

    async def last(self) -> MeasuredRun | None:
        """Return the newest run with its measurements; see ReconciliationRuns.last."""
        rows = await self._rows("last", {})
        return MeasuredRun(**_with_reports(rows[0])) if rows else None

    async def open_findings(self) -> Sequence[OpenFindingCount]:
        """Count the open findings; see ReconciliationRuns.open_findings."""
        return [OpenFindingCount(**row) for row in await self._rows("open_findings", {})]

    async def _rows(self, name: str, asked: dict[str, Any]) -> list[dict[str, Any]]:
        async with (
            available(),
            self._pool.connection() as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            await cursor.execute(SQL[name], asked)
            return await cursor.fetchall()


def finished_run(row: dict[str, Any]) -> FinishedRun:
    """Return a run from its row by column name."""
    return FinishedRun(**_with_reports(row))


def _with_reports(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "reports": tuple(row["reports"])}


def _tracked_finding(row: dict[str, Any]) -> TrackedFinding:
    return TrackedFinding(**{**row, "history": tuple(_event(each) for each in row["history"])})


def _event(row: dict[str, Any]) -> FindingEvent:
    return FindingEvent(**{**row, "at": datetime.fromisoformat(row["at"])})
