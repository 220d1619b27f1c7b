"""What a rerun of an audit has found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from outbox.reconciliation.finding import StoredFinding
from outbox.reconciliation.run import ExpiredEvidence, RerunResult
from tests.integration.postgres.reconciliation.fixtures_stored_runs import make_finding


def make_rerun_result(*finding_ids: str, **fields: Any) -> RerunResult:
    """Return the result of a complete rerun of these findings that saw none of them."""
    defaults: dict[str, Any] = {
        "after": "one",
        "finding_ids": finding_ids,
        "seen": (),
        "complete": True,
        "expired_evidence": ExpiredEvidence(),
    }
    return RerunResult(**{**defaults, **fields})


def refined(finding_id: str) -> StoredFinding:
    """Return that finding as a later rerun refines it."""
    return replace(make_finding(finding_id), finding_class="SKIPPED", detail={"copies": 2})
