"""A chain of reconciliation runs whose findings have every status."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from outbox.messages.message_id import HalfId
from outbox.operators.message_view import OperatorAction
from outbox.postgres.operators.acceptances import PostgresAcceptances
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.reconciliation.finding import StoredFinding
from outbox.reconciliation.run import ExpiredEvidence, StoredRun
from tests.aged_installation.fixtures_life import DAY, Life

RUNS = 100
OPEN, RESOLVED, FIXED, ACCEPTED, UNVERIFIABLE = range(1, 6)
"""The half ids of the findings, named after the status that they end with: older than any leaf."""
_REPAIRED = """
INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, xid, n, publish_error, repair,
    released_at)
SELECT %s, 0, 1, min(id), 1, 1, '', 'aged-action', clock_timestamp() FROM outbox.topic
"""

_SAME_EVERY_DAY = """
INSERT INTO outbox.reconciliation_run (run_id, previous_run_id, mode, started_at, cut_at, verdict,
    sentence, complete, plan, counts, totals, timings)
SELECT 'aged-' || lpad(n::text, 3, '0'), 'aged-' || lpad((n - 1)::text, 3, '0'), mode,
    started_at + make_interval(days => n - 1), cut_at + make_interval(days => n - 1), verdict,
    sentence, complete, plan, counts, totals, timings
FROM outbox.reconciliation_run, generate_series(2, %s) AS n WHERE run_id = 'aged-001'
"""


def chain_of_runs(life: Life, runs: int = RUNS) -> None:
    """Store runs, a day between them, whose findings end open, resolved, fixed and so on."""
    store = PostgresRunStore(life.database_url, keep_days=10 * 365)
    began = datetime.now(UTC) - timedelta(days=runs)  # noqa: TID251
    every = (OPEN, RESOLVED, FIXED, ACCEPTED, UNVERIFIABLE)
    store.save(_run(0, began, every))
    _accept(life, ACCEPTED)
    life.execute(_REPAIRED, FIXED)
    store.save(_run(1, began, (OPEN, ACCEPTED), expired=(HalfId(UNVERIFIABLE),)))
    life.execute("DELETE FROM outbox.held_record WHERE half_id = %s", FIXED)
    life.execute(_SAME_EVERY_DAY, runs - 2)
    store.save(_run(runs - 1, began, (OPEN, ACCEPTED)))
    life.execute(
        "UPDATE outbox.reconciliation_run SET finished_at = cut_at + interval '1 minute'"
        " WHERE run_id LIKE 'aged-%%'"
    )


def _run(
    number: int, began: datetime, found: tuple[int, ...], expired: tuple[HalfId, ...] = ()
) -> StoredRun:
    at = began + timedelta(days=number)
    return StoredRun(
        run_id=f"aged-{number:03}",
        previous_run_id=f"aged-{number - 1:03}" if number else None,
        mode="incremental" if number else "full",
        started_at=at,
        cut_at=at,
        verdict="findings",
        sentence="",
        complete=True,
        plan={},
        counts={},
        totals={"critical": len(found)},
        timings={},
        findings=tuple(_finding(each) for each in found),
        reports={"json": json.dumps(_report(number, found))},
        expired_evidence=ExpiredEvidence(half_ids=expired),
    )


def _report(number: int, found: tuple[int, ...]) -> dict[str, object]:
    """Return what every report has: the findings themselves are in the table."""
    return {
        "schema_version": 1,
        "run_id": f"aged-{number:03}",
        "verdict": "findings",
        "sentence": "",
        "totals": {"critical": len(found)},
        "findings": [],
        "findings_omitted": len(found),
    }


def _finding(number: int) -> StoredFinding:
    return StoredFinding(
        finding_id=f"aged-finding-{number}",
        kind="missing",
        finding_class="LOST",
        severity="critical",
        half_id=HalfId(number),
        topic="aged-orders",
        detail={"copies": 0},
    )


def _accept(life: Life, number: int) -> None:
    until = datetime.now(UTC) + timedelta(seconds=365 * DAY)  # noqa: TID251
    action = OperatorAction(operator="aged", reason="known", key_id=None)
    name = f"aged-finding-{number}"
    life.run(lambda pool: PostgresAcceptances(pool).accept(name, until, action))
