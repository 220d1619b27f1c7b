"""Runs, their findings and the checkpoint in a real PostgreSQL."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest

from outbox.errors import RunOvertaken
from outbox.messages.message import HalfMessage
from outbox.messages.message_id import HalfId
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.reconciliation.finding import PERMANENT_CAUSES, FindingChanges
from outbox.reconciliation.log import Partition
from outbox.reconciliation.run import ExpiredEvidence, StoredCheckpoint
from tests.integration.postgres.reconciliation.fixtures_stored_runs import (
    checkpoint_after,
    make_finding,
    make_run,
    statuses,
)

pytestmark = pytest.mark.postgres


def test_a_finding_is_open_until_a_complete_run_does_not_see_it(database_url: str) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "a", "b"))
    assert store.changes(["b", "c"], True, ExpiredEvidence()) == FindingChanges(new=1, resolved=1)
    store.save(make_run("two", "b", "c"))
    assert statuses(database_url) == {"a": "resolved", "b": "open", "c": "open"}
    store.save(make_run("three", "a"))
    assert statuses(database_url) == {"a": "open", "b": "resolved", "c": "resolved"}


def test_a_partial_run_resolves_nothing(database_url: str) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "a"))
    assert store.changes([], False, ExpiredEvidence()) == FindingChanges(new=0, resolved=0)
    store.save(make_run("two", complete=False))
    assert statuses(database_url) == {"a": "open"}


def test_a_finding_without_its_evidence_is_unverifiable_and_not_resolved(
    database_url: str, halves: list[HalfMessage]
) -> None:
    store, repaired = PostgresRunStore(database_url), halves[0]
    expired = {"partition": 0, "offset": 6}
    found = (
        replace(make_finding("retired"), half_id=HalfId(7)),
        replace(make_finding("found again"), half_id=HalfId(7)),
        replace(make_finding("late"), half_id=HalfId(8)),
        replace(make_finding("fixed"), half_id=repaired.half_id, evidence=expired),
        replace(make_finding("record"), half_id=HalfId(9), evidence=expired),
        replace(make_finding("kept"), half_id=HalfId(9), evidence={"partition": 0, "offset": 7}),
    )
    store.save(make_run("one", findings=found))
    publish_again(database_url, repaired)
    expired_evidence = ExpiredEvidence(half_ids=[HalfId(7)], starts={Partition("points", 0): 7})
    whole = store.changes(["found again"], True, expired_evidence)
    assert whole == FindingChanges(new=0, resolved=2, fixed=1, unverifiable=2)
    assert whole.closed_by_cause == {"LOST/published": 3}
    again = (found[1],)
    store.save(make_run("two", findings=again, complete=False, expired_evidence=expired_evidence))
    still = {"found again", "late", "fixed", "kept"}
    expected = dict.fromkeys(("retired", "record"), "unverifiable") | dict.fromkeys(still, "open")
    assert statuses(database_url) == expected
    store.save(make_run("three", findings=again, expired_evidence=expired_evidence))
    ended = {"late": "resolved", "fixed": "fixed", "kept": "resolved"}
    assert statuses(database_url) == expected | ended


@pytest.mark.parametrize("kind", ["unexpected", "duplicate", "mismatch", "order"])
@pytest.mark.parametrize("known", ["by its half", "by its place"])
def test_a_fault_stays_open_when_its_record_has_expired_until_its_half_is_retired_too(
    database_url: str, halves: list[HalfMessage], kind: str, known: str
) -> None:
    store, half_id = PostgresRunStore(database_url), halves[0].half_id
    place = {"partition": 0, "offset": 6}
    found = replace(make_finding("fault"), kind=kind, half_id=half_id, evidence=place)
    store.save(make_run("one", findings=(found,)))
    expired = ExpiredEvidence(
        half_ids=[half_id] if known == "by its half" else [],
        starts={Partition("points", 0): 7},
    )
    for run_id, complete in (("two", False), ("three", True)):
        assert store.changes([], complete, expired) == FindingChanges(new=0, resolved=0)
        assert store.remaining([], expired) == [found]
        assert store.remaining(["fault"], expired) == []
        store.save(make_run(run_id, complete=complete, expired_evidence=expired))
        assert statuses(database_url) == {"fault": "open"}
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DELETE FROM outbox.half_message WHERE half_id = %s", (half_id,))
    assert store.remaining([], expired) == []
    store.save(make_run("four", expired_evidence=expired))
    assert statuses(database_url) == {"fault": "unverifiable"}


@pytest.mark.parametrize("cause", PERMANENT_CAUSES)
def test_what_nothing_undoes_stays_open_though_no_run_sees_it_again(
    database_url: str, halves: list[HalfMessage], cause: str
) -> None:
    """With a half, until that is retired too; without one, until an operator accepts it."""
    store, half = PostgresRunStore(database_url), halves[0]
    found = replace(make_finding("of a message", cause), kind="disordered", half_id=half.half_id)
    whole = replace(found, finding_id="of a topic", half_id=None, kind="coverage")
    store.save(make_run("one", findings=(found, whole)))
    assert store.changes([], True, ExpiredEvidence()) == FindingChanges(new=0, resolved=0)
    assert store.remaining([], ExpiredEvidence()) == [found, whole]
    change(database_url, "DELETE FROM outbox.half_message")
    store.save(make_run("two"))
    assert statuses(database_url) == {"of a message": "unverifiable", "of a topic": "open"}
    change(
        database_url,
        "UPDATE outbox.reconciliation_finding"
        " SET status = 'accepted', accepted_until = 'infinity' WHERE status = 'open'",
    )
    store.save(make_run("three", findings=(whole,)))
    assert statuses(database_url)["of a topic"] == "accepted"
    store.save(make_run("four", expired_evidence=ExpiredEvidence(excused=["of a topic"])))
    assert statuses(database_url)["of a topic"] == "resolved"


def change(database_url: str, statement: str) -> None:
    """Run one statement."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(statement.encode())


def publish_again(database_url: str, lost: HalfMessage) -> None:
    """Record that a repair has published a message."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, xid, n,"
            " publish_error, repair, released_at)"
            " VALUES (%s, %s, %s, %s, 1, 1, '', 'action', clock_timestamp())",
            (lost.half_id, lost.nonce, lost.shard, lost.message.topic_id),
        )


def test_a_run_that_cannot_be_stored_whole_is_not_stored_at_all(database_url: str) -> None:
    store = PostgresRunStore(database_url)
    broken = replace(make_run("one", "a"), reports={"pdf": ""})
    with pytest.raises(psycopg.errors.CheckViolation):
        store.save(broken)
    assert statuses(database_url) == {}


def test_the_next_run_starts_where_the_last_one_ended(
    database_url: str,
) -> None:
    store = PostgresRunStore(database_url)
    assert store.checkpoint() is None
    store.save(make_run("one", checkpoint=checkpoint_after(None, shard3=(17, 2))))
    assert store.checkpoint() == StoredCheckpoint(run_id="one", cut={"version": 1})
    with psycopg.connect(database_url) as connection:
        noted = "SELECT position, position_n FROM outbox.progress WHERE name = 'reconcile:3'"
        assert connection.execute(noted).fetchall() == [(17, 2)]
    store.save(make_run("two", checkpoint=checkpoint_after("one")))
    assert store.checkpoint() == StoredCheckpoint(run_id="two", cut={"version": 1})


def test_of_two_runs_that_began_at_one_cut_the_second_to_end_stores_nothing(
    database_url: str,
) -> None:
    store = PostgresRunStore(database_url)
    for after in (None, "one"):
        store.save(
            make_run("one" if after is None else "two", "a", checkpoint=checkpoint_after(after))
        )
        with pytest.raises(RunOvertaken):
            store.save(make_run("late", "b", checkpoint=checkpoint_after(after)))
    assert store.checkpoint() == StoredCheckpoint(run_id="two", cut={"version": 1})
    assert statuses(database_url) == {"a": "open"}
