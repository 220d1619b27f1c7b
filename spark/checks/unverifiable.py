"""What a run cannot verify: its findings become unverifiable, or stay open."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from outbox.messages.message_id import HalfId
from spark.checks.half_ids import half_ids_in
from spark.columns.frames import Frames
from spark.columns.segments import BASELINE
from spark.findings.finding import Finding
from spark.findings.ledger import Ledger
from spark.findings.stored_finding import remaining_finding

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.run_store import PostgresRunStore
    from outbox.postgres.reconciliation.source import PostgresSnapshot


def remaining_findings(run_store: PostgresRunStore, ledger: Ledger) -> list[Finding]:
    """Return what earlier runs have found and this run cannot see: it is still open.

    What the present rules of its topic do not know is closed instead.
    """
    stored = run_store.remaining(sorted(ledger.entered), ledger.expired_evidence)
    remaining = [remaining_finding(each) for each in stored]
    excused = {each.finding_id for each in remaining if ledger.excuses(each)}
    ledger.expired_evidence = replace(ledger.expired_evidence, excused=sorted(excused))
    return [each for each in remaining if each.finding_id not in excused]


def unjudged_half_ids(half_ids: Collection[HalfId], commits: DataFrame) -> list[HalfId]:
    """Return the messages that are not among the commits."""
    judged = half_ids_in(commits, half_ids)
    return [each for each in half_ids if each not in judged]


def unlisted_half_ids(half_ids: Collection[HalfId], frames: Frames) -> set[HalfId]:
    """Return the messages without a record that are older than all manifests: none is judged."""
    older = half_ids_in(frames.commits.where(f"standing = '{BASELINE}'"), half_ids)
    return older - half_ids_in(frames.records, older)


def still_held(half_ids: Sequence[HalfId], snapshot: PostgresSnapshot) -> set[HalfId]:
    """Return the messages that are held; one outlives its row of the commit log."""
    holds = snapshot.held_records(half_ids)
    return {half_id for half_id, hold in holds.items() if not hold.released}
