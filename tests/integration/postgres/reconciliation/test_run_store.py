"""The reconciliation's side of a real PostgreSQL: the snapshot, the look-ups, runs and rights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from outbox.errors import DatabaseUnavailable, RunOvertaken
from outbox.messages.message import DecidedBy, End, HalfMessage, Prepared, Resolution
from outbox.messages.message_id import HalfId
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.postgres.reconciliation.source import PostgresSource
from outbox.postgres.sessions.connections import Pool
from outbox.reconciliation.log import Partition
from outbox.reconciliation.snapshot import Undecided
from outbox.reconciliation.stored_run import (
    CarriedRow,
    Chain,
    ChainStep,
    Changes,
    Gone,
    RunBefore,
    StoredFinding,
    StoredRun,
)
from tests.fixtures_messages import make_group, make_message, store_group, store_topic

pytestmark = pytest.mark.postgres

NOON = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def halves(pool: Pool) -> list[HalfMessage]:
    """Three halves: one committed, one rolled back, one undecided."""
    group = await store_group(pool, make_group())
    topic_id = await store_topic(pool, "points")
    store = PostgresHalfStore(pool)
    messages = [make_message(group, topic="points", topic_id=topic_id) for _ in range(3)]
    stored = [a.half for a in await store.prepare(messages) if isinstance(a, Prepared)]
    for half, decision in zip(stored, (Resolution.COMMIT, Resolution.ROLLBACK), strict=False):
        await store.end([End(half_id=half.half_id, nonce=half.nonce, decision=decision)])
    return stored


def make_run(run_id: str, *finding_ids: str, **fields: Any) -> StoredRun:
    """Return a complete run with these open findings."""
    defaults: dict[str, Any] = {
        "run_id": run_id,
        "mode": "full",
        "started_at": NOON,
        "cut_at": NOON,
        "verdict": "findings",
        "sentence": "",
        "complete": True,
        "plan": {},
        "counts": {},
        "totals": {},
        "timings": {},
        "findings": tuple(make_finding(each) for each in finding_ids),
        "reports": {"html": f"<p>{run_id}</p>"},
    }
    return StoredRun(**{**defaults, **fields})


def make_finding(finding_id: str) -> StoredFinding:
    """Return a finding of a lost message."""
    return StoredFinding(
        finding_id=finding_id,
        kind="missing",
        finding_class="LOST",
        severity="critical",
        half_id=HalfId(1),
        topic="points",
        detail={"copies": 0},
    )


def statuses(database_url: str) -> dict[str, str]:
    """Return the status of every finding."""
    with psycopg.connect(database_url) as connection:
        rows = connection.execute("SELECT finding_id, status FROM outbox.reconciliation_finding")
        return dict(rows.fetchall())


def test_the_snapshot_tells_each_decision(database_url: str, halves: list[HalfMessage]) -> None:
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
    assert (len(known), undecided) == (3, Undecided(prepared=1, parked=0))


def test_the_snapshot_does_not_see_what_comes_later(
    database_url: str, halves: list[HalfMessage]
) -> None:
    with PostgresSource(database_url).snapshot() as snapshot:
        with psycopg.connect(database_url) as connection:
            connection.execute("DELETE FROM outbox.op_message")
        known = snapshot.halves([halves[0].half_id])
    assert known[halves[0].half_id].decision is Resolution.COMMIT


def test_the_snapshot_takes_no_transaction_id(database_url: str) -> None:
    with PostgresSource(database_url).snapshot() as snapshot:
        snapshot.undecided()
        with psycopg.connect(database_url) as connection:
            held = connection.execute(
                "SELECT backend_xid FROM pg_stat_activity"
                " WHERE application_name = 'outbox-reconcile'"
            ).fetchall()
    assert held == [(None,)]


def test_topics_are_those_that_were_ever_prepared_for(
    database_url: str, halves: list[HalfMessage]
) -> None:
    assert PostgresSource(database_url).topics() == ["points"]


def test_a_finding_is_open_until_a_complete_run_does_not_see_it(database_url: str) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "a", "b"))
    assert store.changes(["b", "c"], True, Gone()) == Changes(new=1, resolved=1)
    store.save(make_run("two", "b", "c"))
    assert statuses(database_url) == {"a": "resolved", "b": "open", "c": "open"}
    store.save(make_run("three", "a"))
    assert statuses(database_url) == {"a": "open", "b": "resolved", "c": "resolved"}


def test_a_partial_run_resolves_nothing(database_url: str) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "a"))
    assert store.changes([], False, Gone()) == Changes(new=0, resolved=0)
    store.save(make_run("two", complete=False))
    assert statuses(database_url) == {"a": "open"}


def test_the_run_before_is_the_newest_other_one_and_knows_what_was_open(
    database_url: str,
) -> None:
    store = PostgresRunStore(database_url)
    assert store.before("one", ["a"]) is None
    store.save(make_run("one", "a", "b"))
    assert store.before("one", ["a"]) is None
    store.save(make_run("two", "b", verdict="inconclusive"))
    assert store.before("three", ["a", "b", "c"]) == RunBefore(
        run_id="two", verdict="inconclusive", open_before=frozenset({"b"})
    )


def test_past_runs_come_oldest_first_with_their_discrepancies_and_without_the_run_itself(
    database_url: str,
) -> None:
    store = PostgresRunStore(database_url)
    for number, name in enumerate(("one", "two", "three")):
        store.save(make_run(name, totals={"missing": number, "duplicate": 1}))
    assert [(run.run_id, run.open) for run in store.past("three", 29)] == [("one", 1), ("two", 2)]
    assert [run.run_id for run in store.past("new", 1)] == ["three"]


def test_what_became_of_a_runs_findings_is_known_by_run(database_url: str) -> None:
    store = PostgresRunStore(database_url)
    assert store.statuses("one") is None
    store.save(make_run("one", "a", "b"))
    store.save(make_run("two", "b"))
    store.save(make_run("three"))
    assert store.statuses("one") == [
        ("a", "LOST", "critical", "resolved"),
        ("b", "LOST", "critical", "resolved"),
    ]
    assert store.statuses("two") == [("b", "LOST", "critical", "resolved")]
    assert store.statuses("three") == []


def test_what_a_run_changes_is_told_by_id_and_class(database_url: str) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "a", "b"))
    changes = store.changes(["b", "c"], True, Gone())
    assert (changes.known, changes.closed) == (frozenset({"b"}), {"LOST": 1})
    assert store.changes([], False, Gone()).closed == {}


def test_what_a_repair_has_published_is_told_apart_from_what_is_gone_by_itself(
    database_url: str, halves: list[HalfMessage]
) -> None:
    store, lost = PostgresRunStore(database_url), halves[0]
    repaired = replace(make_finding("repaired"), half_id=lost.half_id)
    gone = replace(make_finding("gone"), half_id=HalfId(7))
    store.save(make_run("one", findings=(repaired, gone)))
    publish_again(database_url, lost)
    assert store.changes([], True, Gone()) == Changes(new=0, resolved=1, fixed=1)
    store.save(make_run("two"))
    assert statuses(database_url) == {"repaired": "fixed", "gone": "resolved"}


def test_what_nobody_can_tell_any_more_is_unverifiable_and_not_resolved(
    database_url: str, halves: list[HalfMessage]
) -> None:
    store, repaired = PostgresRunStore(database_url), halves[0]
    expired = {"partition": 0, "offset": 6}
    found = (
        replace(make_finding("retired"), half_id=HalfId(7)),
        replace(make_finding("found again"), half_id=HalfId(7)),
        replace(make_finding("late"), half_id=HalfId(8)),
        replace(make_finding("fixed"), half_id=repaired.half_id, detail=expired),
        replace(make_finding("record"), half_id=HalfId(9), detail=expired),
        replace(make_finding("kept"), half_id=HalfId(9), detail={"partition": 0, "offset": 7}),
        replace(make_finding("clocks"), half_id=None, kind="latency", detail=expired),
    )
    store.save(make_run("one", findings=found))
    publish_again(database_url, repaired)
    gone = Gone(half_ids=[HalfId(7)], starts={Partition("points", 0): 7})
    partial = store.changes(["found again"], False, gone)
    assert partial == Changes(new=0, resolved=0, unverifiable=2)
    whole = store.changes(["found again"], True, gone)
    assert whole == Changes(new=0, resolved=3, fixed=1, unverifiable=2)
    assert (whole.closed, whole.expired) == ({"LOST": 4}, {"LOST": 2})
    again = (found[1],)
    store.save(make_run("two", findings=again, complete=False, gone=gone))
    still = {"found again", "late", "fixed", "kept", "clocks"}
    expected = dict.fromkeys(("retired", "record"), "unverifiable") | dict.fromkeys(still, "open")
    assert statuses(database_url) == expected
    store.save(make_run("three", findings=again, gone=gone))
    ended = {"late": "resolved", "fixed": "fixed", "kept": "resolved", "clocks": "resolved"}
    assert statuses(database_url) == expected | ended


def test_what_was_closed_long_ago_is_forgotten_and_what_is_open_never(database_url: str) -> None:
    store = PostgresRunStore(database_url, keep_days=90)
    store.save(make_run("one", "open", "old", "new"))
    store.save(make_run("two", "open"))
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "UPDATE outbox.reconciliation_finding SET updated_at = clock_timestamp()"
            " - make_interval(days => CASE finding_id WHEN 'new' THEN 89 ELSE 91 END)"
        )
    store.save(make_run("three", "open", complete=False))
    assert statuses(database_url) == {"open": "open", "new": "resolved"}


def test_messages_below_a_half_id_that_still_have_a_finding_are_known(database_url: str) -> None:
    store = PostgresRunStore(database_url)
    found = [replace(make_finding(str(n)), half_id=HalfId(n)) for n in (7, 8, 9, 10)]
    stuck = replace(found[1], kind="stuck")
    store.save(make_run("one", findings=(found[0], stuck, found[2], found[3])))
    assert sorted(store.open_below(HalfId(10))) == [7, 9]
    store.save(make_run("two", findings=(found[2],)))
    assert store.open_below(HalfId(10)) == [9]


def test_what_was_ever_new_and_resolved_is_counted_by_kind_and_never_falls(
    database_url: str,
) -> None:
    store = PostgresRunStore(database_url)

    def ever() -> Any:
        with psycopg.connect(database_url) as connection:
            rows = connection.execute(
                "SELECT plan -> 'ever' FROM outbox.reconciliation_run ORDER BY finished_at"
            ).fetchall()
        return rows[-1][0]

    altered = replace(make_finding("b"), kind="mismatch")
    store.save(make_run("one", findings=(make_finding("a"), altered)))
    assert ever() == {"new": {"missing": 1, "mismatch": 1}, "resolved": {}}
    for _ in range(2):
        store.save(make_run("two", "a"))
        assert ever() == {"new": {"missing": 1, "mismatch": 1}, "resolved": {"mismatch": 1}}
    store.save(make_run("three", findings=(altered,)))
    assert ever() == {
        "new": {"missing": 1, "mismatch": 2},
        "resolved": {"missing": 1, "mismatch": 1},
    }


def publish_again(database_url: str, lost: HalfMessage) -> None:
    """Note that a repair has published a message."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, xid, n,"
            " publish_error, repair, released_at)"
            " VALUES (%s, %s, %s, %s, 1, 1, '', 'action', clock_timestamp())",
            (lost.half_id, lost.nonce, lost.shard, lost.message.topic_id),
        )


def test_saving_a_run_again_changes_nothing(database_url: str) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", "a"))
    store.save(make_run("one", "a"))
    with psycopg.connect(database_url) as connection:
        runs = connection.execute("SELECT run_id FROM outbox.reconciliation_run").fetchall()
        bodies = connection.execute("SELECT body FROM outbox.reconciliation_report").fetchall()
    assert (runs, bodies) == ([("one",)], [("<p>one</p>",)])


def test_a_run_that_cannot_be_stored_whole_is_not_stored_at_all(database_url: str) -> None:
    store = PostgresRunStore(database_url)
    broken = replace(make_run("one", "a"), reports={"pdf": ""})
    with pytest.raises(psycopg.errors.CheckViolation):
        store.save(broken)
    assert statuses(database_url) == {}


@pytest.fixture
def auditor_url(database_url: str) -> Iterator[str]:
    """The database as a user that has only the reconciliation's role sees it."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE auditor LOGIN PASSWORD 'a' IN ROLE outbox_reconcile")
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
    with source.snapshot() as snapshot:
        assert len(snapshot.halves(ids)) == 3
        assert snapshot.undecided(whole=False) == snapshot.undecided()
        snapshot.holds(ids), snapshot.places(ids), snapshot.retired_below()
        snapshot.already_published(ids), snapshot.stuck()
    PostgresRunStore(auditor_url).save(
        make_run("one", "a", step=step(None, 7, positions={3: (17, 2)}))
    )
    assert PostgresRunStore(auditor_url).chain() is not None
    with psycopg.connect(auditor_url) as connection:
        connection.execute("SELECT half_ids FROM outbox.reconciliation_commits").fetchall()
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT value FROM outbox.half_message")


def test_a_database_that_is_away_is_told_as_such() -> None:
    with pytest.raises(DatabaseUnavailable):
        PostgresSource("postgresql://u@127.0.0.1:1/outbox").topics()


def step(after: str | None, *half_ids: int, **fields: Any) -> ChainStep:
    """Return a step of the last cut that carries these half ids."""
    carried = [CarriedRow("commit", HalfId(each), "{}") for each in half_ids]
    defaults: dict[str, Any] = {"cut": {"version": 1}, "carried": carried}
    return ChainStep(after=after, **{**defaults, **fields})


def test_the_next_run_starts_where_the_last_one_ended_with_what_it_left_open(
    database_url: str,
) -> None:
    store = PostgresRunStore(database_url)
    assert store.chain() is None
    store.save(make_run("one", step=step(None, 7, 9, positions={3: (17, 2)})))
    chain = store.chain()
    assert chain is not None
    assert (chain.run_id, chain.cut) == ("one", {"version": 1})
    assert {each.half_id for each in chain.carried} == {7, 9}
    with psycopg.connect(database_url) as connection:
        noted = "SELECT position, position_n FROM outbox.progress WHERE name = 'reconcile:3'"
        assert connection.execute(noted).fetchall() == [(17, 2)]
    store.save(make_run("two", step=step("one", cut=None)))
    assert store.chain() == Chain(run_id="two", cut=None, carried=())


def test_of_two_runs_that_began_at_one_cut_the_second_to_end_stores_nothing(
    database_url: str,
) -> None:
    store = PostgresRunStore(database_url)
    for after in (None, "one"):
        store.save(make_run("one" if after is None else "two", "a", step=step(after, 7)))
        with pytest.raises(RunOvertaken):
            store.save(make_run("late", "b", step=step(after, 8)))
    chain = store.chain()
    assert chain is not None
    assert (chain.run_id, [each.half_id for each in chain.carried]) == ("two", [7])
    assert statuses(database_url) == {"a": "open"}


def test_a_run_that_is_saved_twice_moves_the_cut_once(database_url: str) -> None:
    store = PostgresRunStore(database_url)
    for _ in range(2):
        store.save(make_run("one", step=step(None, 7)))
    chain = store.chain()
    assert chain is not None
    assert [each.half_id for each in chain.carried] == [7]
