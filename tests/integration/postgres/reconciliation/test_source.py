"""The audited database on a real PostgreSQL: snapshot, look-ups, and the rights of the role."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import psycopg
import pytest

from outbox.clock import SystemClock
from outbox.messages.message import DecidedBy, End, HalfMessage, Resolution
from outbox.messages.message_id import HalfId, leaf_in
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.postgres.reconciliation.source import PostgresSource
from outbox.postgres.sessions.connections import Pool
from outbox.reconciliation.snapshot import UndecidedCounts
from tests.fixtures_paths import PROJECT
from tests.integration.postgres.reconciliation.fixtures_stored_runs import (
    checkpoint_after,
    make_run,
)

PAGE = (PROJECT / "docs/security.md").read_text("utf-8")
ABOVE_ALL = 1 << 62
"""Above every transaction id."""
(CREATE,) = re.findall(r"^CREATE ROLE auditor .*;$", PAGE, re.MULTILINE)


def test_the_snapshot_shows_each_decision(database_url: str, halves: list[HalfMessage]) -> None:
    with PostgresSource(database_url).snapshot() as snapshot:
        known = snapshot.halves([*[half.half_id for half in halves], HalfId(1)])
        undecided = snapshot.undecided()
    assert [known[half.half_id].half for half in halves] == halves
    assert [known[half.half_id].decision for half in halves] == [
        Resolution.COMMIT,
        Resolution.ROLLBACK,
        None,
    ]
    assert known[halves[0].half_id].decided_by is DecidedBy.PRODUCER
    assert (len(known), undecided) == (3, UndecidedCounts(prepared=1, parked=0))


def test_the_snapshot_does_not_see_what_comes_later(
    database_url: str, halves: list[HalfMessage]
) -> None:
    with PostgresSource(database_url).snapshot() as snapshot:
        with psycopg.connect(database_url) as connection:
            connection.execute("DELETE FROM outbox.op_message")
        known = snapshot.halves([halves[0].half_id])
    assert known[halves[0].half_id].decision is Resolution.COMMIT


async def test_a_commit_without_a_row_of_the_commit_log_is_found_until_its_leaf_is_removed(
    database_url: str, pool: Pool, halves: list[HalfMessage]
) -> None:
    lost, _, later = halves

    def unlogged(
        since: datetime | None, *asked: HalfMessage, before: int = ABOVE_ALL
    ) -> set[HalfId]:
        with PostgresSource(database_url).snapshot() as snapshot:
            among = snapshot.unlogged_among([each.half_id for each in asked])
            found = snapshot.unlogged(since, before) | among
        return {*found} & {each.half_id for each in halves}

    later_end = End(half_id=later.half_id, nonce=later.nonce, decision=Resolution.COMMIT)
    await PostgresHalfStore(pool).end([later_end])
    soon = SystemClock().now() + timedelta(hours=1)
    assert (unlogged(None), unlogged(soon, lost)) == (set(), set())
    change(database_url, f"DELETE FROM outbox.commit_log WHERE {lost.half_id} = ANY (half_ids)")
    assert unlogged(None) == {lost.half_id}
    assert (unlogged(soon), unlogged(soon, *halves)) == (set(), {lost.half_id})
    assert unlogged(soon, before=0) == {lost.half_id}, "the cut of before was an hour ahead"
    leaf = leaf_in(lost.half_id)
    change(database_url, f"INSERT INTO outbox.retired_leaf (leaf) VALUES ({leaf})")
    assert unlogged(None, lost) == set()


@pytest.mark.parametrize(
    "changing",
    [
        "UPDATE outbox.op_message SET decision = 2",
        "UPDATE outbox.half_message SET topic_id = 1000000",
        "DELETE FROM outbox.half_message",
    ],
)
def test_a_commit_whose_rows_have_changed_is_found_until_its_leaf_is_removed(
    database_url: str, halves: list[HalfMessage], changing: str
) -> None:
    def changed(since: datetime | None = None, before: int = ABOVE_ALL) -> set[HalfId]:
        with PostgresSource(database_url).snapshot() as snapshot:
            return {each.half_id for each in snapshot.changed(since, before)}

    committed = halves[0].half_id
    assert changed() == set()
    change(database_url, f"{changing} WHERE half_id = {committed}")
    soon = SystemClock().now() + timedelta(hours=1)
    assert (changed(), changed(soon, before=0)) == ({committed}, {committed})
    change(database_url, f"INSERT INTO outbox.retired_leaf (leaf) VALUES ({leaf_in(committed)})")
    assert changed() == set()


def change(database_url: str, statement: str) -> None:
    """Run one statement."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(statement.encode())


@pytest.fixture
def auditor_url(database_url: str) -> Iterator[str]:
    """The database as a user that has only the reconciliation's role sees it."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(CREATE.replace("…", "a").encode())
        try:
            parts = urlsplit(database_url)
            yield parts._replace(netloc=f"auditor:a@{parts.hostname}:{parts.port}").geturl()
        finally:
            connection.execute("DROP ROLE auditor")


def test_the_role_may_run_an_audit_and_nothing_else(
    auditor_url: str, halves: list[HalfMessage]
) -> None:
    source = PostgresSource(auditor_url)
    ids = [half.half_id for half in halves]
    assert source.topics() == ["points"]
    assert source.installation_id().version == 4
    with source.snapshot() as snapshot:
        assert len(snapshot.halves(ids)) == 3
        assert snapshot.undecided() == UndecidedCounts(prepared=1, parked=0)
        snapshot.held_records(ids), snapshot.recorded_places(ids), snapshot.retired_below()
        assert snapshot.relay_progress() == {}
        assert not snapshot.already_published(ids)
        snapshot.retired_leaves()
        snapshot.unlogged(), snapshot.unlogged_among(ids)
        assert snapshot.changed() == []
    PostgresRunStore(auditor_url).save(
        make_run("one", "a", checkpoint=checkpoint_after(None, shard3=(17, 2)))
    )
    assert PostgresRunStore(auditor_url).checkpoint() is not None
    assert PostgresRunStore(auditor_url).open_retired(ids[0], ()) == [1]
    with psycopg.connect(auditor_url) as connection:
        connection.execute("SELECT half_ids FROM outbox.reconciliation_commits").fetchall()
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT value FROM outbox.half_message")
