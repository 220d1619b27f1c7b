"""Runs, findings and checkpoints to store, and the statuses that are stored."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import psycopg

from outbox.messages.message_id import HalfId
from outbox.reconciliation.finding import StoredFinding
from outbox.reconciliation.run import CheckpointUpdate, StoredRun

NOON = datetime(2026, 1, 1, tzinfo=UTC)


def make_run(run_id: str, *finding_ids: str, **fields: Any) -> StoredRun:
    """Return a complete run with these open findings; other fields are columns of its row."""
    row: dict[str, Any] = {
        "previous_run_id": None,
        "mode": "full",
        "started_at": NOON,
        "cut_at": NOON,
        "verdict": "findings",
        "sentence": "",
        "plan": {},
        "totals": {},
    }
    row |= {name: fields.pop(name) for name in row.keys() & fields.keys()}
    defaults: dict[str, Any] = {
        "run_id": run_id,
        "row": row,
        "complete": True,
        "findings": tuple(make_finding(each) for each in finding_ids),
        "reports": {"html": f"<p>{run_id}</p>"},
    }
    return StoredRun(**{**defaults, **fields})


def make_finding(finding_id: str, cause: str = "LOST/published") -> StoredFinding:
    """Return a finding of a message, lost unless said otherwise."""
    finding_class, _, detail = cause.partition("/")
    return StoredFinding(
        finding_id=finding_id,
        kind="missing",
        finding_class=finding_class,
        detail=detail,
        severity="critical",
        half_id=HalfId(1),
        topic="points",
        evidence={"copies": 0},
    )


def refined(finding_id: str) -> StoredFinding:
    """Return that finding as a later run refines it."""
    return replace(make_finding(finding_id, "LOST/skipped"), evidence={"copies": 2})


def statuses(database_url: str) -> dict[str, str]:
    """Return the status of every finding."""
    with psycopg.connect(database_url) as connection:
        rows = connection.execute("SELECT finding_id, status FROM outbox.reconciliation_finding")
        return dict(rows.fetchall())


def checkpoint_after(after: str | None, **positions: tuple[int, int]) -> CheckpointUpdate:
    """Return a checkpoint after that run, with the positions of shards named ``shard3``."""
    audited = {int(name.removeprefix("shard")): each for name, each in positions.items()}
    return CheckpointUpdate(after=after, cut={"version": 1}, positions=audited)
