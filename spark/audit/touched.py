"""Whether what is new concerns what an earlier run has judged: then it cannot be judged alone."""

from __future__ import annotations

from outbox.messages.manifest import Kind
from spark.checks.coverage import manifest_breaks
from spark.checks.open_findings import have_changed
from spark.checks.unlogged_commits import unlogged
from spark.columns import manifests
from spark.compare.bucket_checksums import Differences
from spark.cut.checkpoint import Previous
from spark.run_context import SparkRun


def touched_reason(run: SparkRun, found: Differences, previous: Previous) -> str | None:
    """Return why a run that continues ``previous`` must read everything; None if it need not.

    A release, a repair, a late record and a second one are about older messages. So may be a
    manifest that does not follow in turn.
    """
    snapshot, missing = run.snapshot, run.context.run_store.missing([])
    if {*unlogged(snapshot, previous, missing)}.difference(missing):
        return "a message that was decided COMMIT is not in the commit log"
    if have_changed(run.earlier, snapshot):
        return "a message with an open finding was decided, dropped or released"
    if found.uncommitted:
        return "a record is of no message that is new"
    new = manifests.newer_than(run.frames.manifests, previous.batches)
    if not new.where(f"kind <> {Kind.BATCH:d}").isEmpty():
        return "a manifest is of a release, a repair or a new history"
    if manifest_breaks(run.frames, snapshot, previous.batches):
        return "a manifest does not follow in turn"
    return None
