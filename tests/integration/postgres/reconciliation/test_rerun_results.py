"""A rerun between two runs stores the new status of some findings, and no other row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import psycopg
import pytest

from outbox.errors import RunOvertaken
from outbox.messages.message_id import HalfId
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.reconciliation.log import Partition
from outbox.reconciliation.run import ExpiredEvidence
from tests.integration.postgres.reconciliation.fixtures_stored_runs import (
    checkpoint_after,
    make_finding,
    make_rerun,
    make_run,
    refined,
    statuses,
)

pytestmark = pytest.mark.postgres

KEPT = ("run", "report", "cut", "carry")


def stored(database_url: str) -> dict[str, Any]:
    """Return everything that runs store except findings, and the positions for retirement."""
    with psycopg.connect(database_url) as connection:
        tables = {
            name: connection.execute(f"SELECT * FROM outbox.reconciliation_{name}").fetchall()
            for name in KEPT
        }
        noted = "SELECT * FROM outbox.progress WHERE name LIKE 'reconcile:%'"
        return {**tables, "progress": connection.execute(noted).fetchall()}


def test_it_closes_the_given_findings_that_it_did_not_see_and_stores_nothing_else(
    database_url: str,
) -> None:
    store = PostgresRunStore(database_url)
    store.save(
        make_run(
            "one", "a", "b", "other", checkpoint=checkpoint_after(None, 7, positions={3: (17, 2)})
        )
    )
    before = stored(database_url)
    store.save_rerun(make_rerun(refined("b"), make_finding("new")), ["a", "b"])
    assert statuses(database_url) == {"a": "resolved", "b": "open", "other": "open"}
    assert store.statuses("one") == [
        replace(make_finding("a"), status="resolved"),
        refined("b"),
        make_finding("other"),
    ]
    assert stored(database_url) == before


def test_the_next_run_reopens_what_it_sees_and_leaves_the_others_closed(
    database_url: str,
) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "a", "b", checkpoint=checkpoint_after(None)))
    store.save_rerun(make_rerun(), ["a", "b"])
    assert store.changes(["a"], True, ExpiredEvidence()).new == 1
    store.save(make_run("two", "a", "new", checkpoint=checkpoint_after("one")))
    assert statuses(database_url) == {"a": "open", "b": "resolved", "new": "open"}


def test_a_partial_rerun_closes_only_unverifiable_findings(database_url: str) -> None:
    store = PostgresRunStore(database_url)
    expired = replace(
        make_finding("record"), half_id=HalfId(9), evidence={"partition": 0, "offset": 6}
    )
    found = (make_finding("retired"), expired, replace(make_finding("late"), half_id=HalfId(8)))
    store.save(make_run("one", findings=found, checkpoint=checkpoint_after(None)))
    expired_evidence = ExpiredEvidence(half_ids=[HalfId(1)], starts={Partition("points", 0): 7})
    rerun = make_rerun(complete=False, expired_evidence=expired_evidence)
    store.save_rerun(rerun, ["retired", "record", "late"])
    assert statuses(database_url) == {
        "retired": "unverifiable",
        "record": "unverifiable",
        "late": "open",
    }


@pytest.mark.parametrize("after", [None, "zero"])
def test_a_rerun_that_began_before_a_newer_run_stores_nothing(
    database_url: str, after: str | None
) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "a", checkpoint=checkpoint_after(None)))
    with pytest.raises(RunOvertaken):
        store.save_rerun(make_rerun(after=after), ["a"])
    assert statuses(database_url) == {"a": "open"}
