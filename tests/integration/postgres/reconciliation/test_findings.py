"""The history of a finding: each change with its run, stored in the transaction of the change."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from outbox.clock import SystemClock
from outbox.messages.message_id import HalfId
from outbox.operators.message_view import OperatorAction
from outbox.postgres.operators.operations import PostgresOperations
from outbox.postgres.reconciliation.finished_runs import EVENTS_SHOWN, PostgresReconciliationRuns
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.postgres.sessions.connections import Pool
from outbox.reconciliation.finding import StoredFinding
from outbox.reconciliation.run import ExpiredEvidence
from tests.integration.postgres.reconciliation.fixtures_stored_runs import (
    make_finding,
    make_run,
    refined,
)

pytestmark = pytest.mark.postgres


def history(database_url: str) -> list[tuple[str, str, str, str | None]]:
    """Return the finding, event, cause and run of every event, in order."""
    with psycopg.connect(database_url) as connection:
        return connection.execute(
            "SELECT finding_id, event, class || '/' || detail, run_id"
            " FROM outbox.reconciliation_finding_event"
            " ORDER BY id"
        ).fetchall()


def repair(database_url: str, half_id: HalfId) -> None:
    """Record that a repair has published a message."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, xid, n,"
            " publish_error, repair, released_at)"
            " VALUES (%s, 1, 1, 1, 1, 1, '', 'action', clock_timestamp())",
            (half_id,),
        )


def change(database_url: str, statement: str) -> None:
    """Run one statement on the tables of findings."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(statement.encode())


def graver(finding_id: str) -> StoredFinding:
    """Return that finding with another severity."""
    return replace(make_finding(finding_id), severity="high")


def test_a_run_adds_an_event_for_each_change_and_none_for_an_unchanged_finding(
    database_url: str,
) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "a", "b"))
    store.save(make_run("two", "a", "b"))
    store.save(make_run("three", findings=(refined("a"), graver("b"))))
    store.save(make_run("four", findings=(refined("a"),)))
    store.save(make_run("five", findings=(refined("a"), make_finding("b"))))
    assert history(database_url) == [
        ("a", "found", "LOST/published", "one"),
        ("b", "found", "LOST/published", "one"),
        ("a", "refined", "LOST/skipped", "three"),
        ("b", "refined", "LOST/published", "three"),
        ("b", "resolved", "LOST/published", "four"),
        ("b", "reopened", "LOST/published", "five"),
    ]


def test_an_event_shows_how_a_finding_was_closed(database_url: str) -> None:
    store = PostgresRunStore(database_url)
    names = ("repaired", "expired", "absent")
    found = [replace(make_finding(n), half_id=HalfId(h)) for h, n in enumerate(names, 7)]
    store.save(make_run("one", findings=tuple(found)))
    repair(database_url, HalfId(7))
    store.save(make_run("two", expired_evidence=ExpiredEvidence(half_ids=[HalfId(8)])))
    assert set(history(database_url)[3:]) == {
        ("repaired", "fixed", "LOST/published", "two"),
        ("expired", "unverifiable", "LOST/published", "two"),
        ("absent", "resolved", "LOST/published", "two"),
    }


async def test_an_acceptance_is_an_event_and_so_is_its_end_where_a_run_sees_the_finding(
    database_url: str, pool: Pool
) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "a"))
    operations, until = PostgresOperations(pool), SystemClock().now() + timedelta(days=1)
    action = OperatorAction(operator="ops", reason="known", key_id=None)
    assert await operations.accept("a", until, action)
    assert not await operations.accept("nothing", until, action)
    store.save(make_run("two", "a"))
    store.save(make_run("three", findings=(refined("a"),)))
    change(database_url, "UPDATE outbox.reconciliation_finding SET accepted_until = now()")
    store.save(make_run("four", "a"))
    assert history(database_url) == [
        ("a", "found", "LOST/published", "one"),
        ("a", "accepted", "LOST/published", None),
        ("a", "refined", "LOST/skipped", "three"),
        ("a", "reopened", "LOST/published", "four"),
    ]


def test_a_finding_is_forgotten_with_its_history_and_no_other_ones(database_url: str) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "open", "old"))
    store.save(make_run("two", "open"))
    change(
        database_url,
        "UPDATE outbox.reconciliation_finding SET updated_at = now() - interval '91 days'",
    )
    store.save(make_run("three", "open"))
    assert history(database_url) == [("open", "found", "LOST/published", "one")]


async def test_operators_read_the_last_changes_oldest_first(database_url: str, pool: Pool) -> None:
    store, runs = PostgresRunStore(database_url), PostgresReconciliationRuns(pool)
    for number in range(EVENTS_SHOWN + 2):
        store.save(make_run(f"run-{number:02}", *(["a"] if number % 2 == 0 else ["b"])))
    (one,) = await runs.findings("run-00", 10, "")
    assert (one.finding_id, len(one.history)) == ("a", EVENTS_SHOWN)
    assert (one.history[0]["event"], one.history[0]["run_id"]) == ("reopened", "run-02")
    last = one.history[-1]
    assert (last["event"], last["status"], last["run_id"]) == ("resolved", one.status, "run-51")
    times = [each["at"] for each in one.history]
    assert times == sorted(times)


async def test_operators_read_the_worst_findings_first_page_by_page(
    database_url: str, pool: Pool
) -> None:
    graded = {"a": "low", "b": "critical", "c": "medium", "d": "critical"}
    findings = tuple(replace(make_finding(id_), severity=s) for id_, s in graded.items())
    PostgresRunStore(database_url).save(make_run("one", findings=findings))
    runs, seen = PostgresReconciliationRuns(pool), [""]
    while page := await runs.findings("one", 1, seen[-1]):
        seen += [each.finding_id for each in page]
    assert seen[1:] == ["b", "d", "c", "a"]
