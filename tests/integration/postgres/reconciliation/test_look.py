"""A look between two runs: what some findings have become is stored, and not a row besides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import psycopg
import pytest

from outbox.errors import RunOvertaken
from outbox.messages.message_id import HalfId
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.reconciliation.log import Partition
from outbox.reconciliation.stored_run import ChainStep, Gone, Look, StoredFinding
from tests.integration.postgres.reconciliation.test_run_store import (
    make_finding,
    make_run,
    statuses,
    step,
)

pytestmark = pytest.mark.postgres

KEPT = ("run", "report", "cut", "carry")


def make_look(*finding_ids: str, **fields: Any) -> Look:
    """Return a complete look at these findings that saw none of them."""
    defaults: dict[str, Any] = {
        "after": "one",
        "finding_ids": finding_ids,
        "seen": (),
        "complete": True,
        "gone": Gone(),
    }
    return Look(**{**defaults, **fields})


def stored(database_url: str) -> dict[str, Any]:
    """Return all that runs leave behind besides findings, and how far retirement may go."""
    with psycopg.connect(database_url) as connection:
        tables = {
            name: connection.execute(f"SELECT * FROM outbox.reconciliation_{name}").fetchall()
            for name in KEPT
        }
        noted = "SELECT * FROM outbox.progress WHERE name LIKE 'reconcile:%'"
        return {**tables, "progress": connection.execute(noted).fetchall()}


def refined(finding_id: str) -> StoredFinding:
    """Return that finding as a later look knows it better."""
    return replace(make_finding(finding_id), finding_class="SKIPPED", detail={"copies": 2})


def test_it_closes_what_it_was_asked_for_and_did_not_see_and_stores_nothing_else(
    database_url: str,
) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "a", "b", "other", step=step(None, 7, positions={3: (17, 2)})))
    before = stored(database_url)
    store.settle(make_look("a", "b", seen=[refined("b"), make_finding("new")]))
    assert statuses(database_url) == {"a": "resolved", "b": "open", "other": "open"}
    assert store.statuses("one") == [
        ("a", "LOST", "critical", "resolved"),
        ("b", "SKIPPED", "critical", "open"),
        ("other", "LOST", "critical", "open"),
    ]
    assert stored(database_url) == before


@pytest.mark.parametrize("last", [None, step(None, cut=None)])
def test_without_a_cut_to_continue_it_leaves_none_behind(
    database_url: str, last: ChainStep | None
) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "a", step=last))
    before = stored(database_url)
    store.settle(make_look("a", after="one" if last else None))
    assert (statuses(database_url), stored(database_url)) == ({"a": "resolved"}, before)


def test_the_role_of_the_reconciliation_may_store_it(database_url: str) -> None:
    PostgresRunStore(database_url).save(make_run("one", "a", "b", step=step(None)))
    auditor = f"{database_url}?options=-c%20role%3Doutbox_reconcile"
    PostgresRunStore(auditor).settle(make_look("a", "b", seen=[refined("b")]))
    assert statuses(database_url) == {"a": "resolved", "b": "open"}


def test_the_next_run_opens_again_what_it_sees_and_leaves_closed_what_it_does_not(
    database_url: str,
) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "a", "b", step=step(None)))
    store.settle(make_look("a", "b"))
    assert store.changes(["a"], True, Gone()).new == 1
    store.save(make_run("two", "a", "new", step=step("one")))
    assert statuses(database_url) == {"a": "open", "b": "resolved", "new": "open"}


def test_what_has_closed_meanwhile_or_is_accepted_stays_as_it_is(database_url: str) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "a", "b", "c", step=step(None)))
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "UPDATE outbox.reconciliation_finding SET accepted_until = 'infinity', status ="
            " CASE finding_id WHEN 'a' THEN 'accepted' WHEN 'b' THEN 'fixed' ELSE status END"
        )
    store.settle(make_look("a", "b", "c", seen=[refined("b")]))
    assert statuses(database_url) == {"a": "accepted", "b": "fixed", "c": "resolved"}
    assert ("b", "LOST", "critical", "fixed") in (store.statuses("one") or ())


def test_a_partial_look_closes_only_what_nobody_can_tell_any_more(database_url: str) -> None:
    store = PostgresRunStore(database_url)
    expired = replace(
        make_finding("record"), half_id=HalfId(9), detail={"partition": 0, "offset": 6}
    )
    found = (make_finding("retired"), expired, replace(make_finding("late"), half_id=HalfId(8)))
    store.save(make_run("one", findings=found, step=step(None)))
    gone = Gone(half_ids=[HalfId(1)], starts={Partition("points", 0): 7})
    store.settle(make_look("retired", "record", "late", complete=False, gone=gone))
    assert statuses(database_url) == {
        "retired": "unverifiable",
        "record": "unverifiable",
        "late": "open",
    }


@pytest.mark.parametrize("after", [None, "zero"])
def test_a_look_from_before_a_newer_run_stores_nothing(
    database_url: str, after: str | None
) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "a", step=step(None)))
    with pytest.raises(RunOvertaken):
        store.settle(make_look("a", after=after))
    assert statuses(database_url) == {"a": "open"}
