"""What a run cannot verify: its findings become unverifiable, or stay open."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.messages.message_id import HalfId
from spark.columns import schemas
from spark.columns.segments import BASELINE
from spark.findings.finding import Finding
from spark.findings.ledger import Ledger
from spark.findings.stored_finding import remaining_finding

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.run_store import PostgresRunStore


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
    """Return the messages that are not among the commits.

    The commits are asked: Spark moves an anti join below the one partition of ``asked``, and then
    shuffles it.
    """
    if not half_ids:
        return []
    rows = [{"half_id": each} for each in half_ids]
    asked = schemas.frame_of(commits.sparkSession, rows, schemas.HALF_IDS)
    found = commits.select("half_id").join(asked, "half_id", "left_semi").collect()
    judged = {row["half_id"] for row in found}
    return [each for each in half_ids if each not in judged]


def unlisted_half_ids(half_ids: Collection[HalfId], unsettled: DataFrame) -> list[HalfId]:
    """Return the messages without a record that are older than all manifests: none is judged."""
    if not half_ids:
        return []
    rows = [{"half_id": each} for each in half_ids]
    asked = schemas.frame_of(unsettled.sparkSession, rows, schemas.HALF_IDS)
    absent = unsettled.where((F.col("standing") == BASELINE) & (F.expr("copies + ahead") == 0))
    found = absent.join(asked, "half_id", "left_semi").select("half_id").collect()
    return [HalfId(row["half_id"]) for row in found]
