"""The last hour, minute by minute: exact while it is short, a bounded sample of a long one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import LiteralString

import pytest

from benchmarks.load.committed import register
from benchmarks.load.history import publish_history
from devservers.postgres import EmbeddedPostgres
from outbox.messages.message import Message
from outbox.operators.rates import Rates, RateSeries
from outbox.postgres.maintenance.rates import read_rates
from outbox.postgres.sessions.connections import Connection, connect
from tests.fixtures_databases import drop_database, make_database

pytestmark = pytest.mark.postgres

HISTORY = 200_000
SERIES = ["prepared", "committed", "published", "checked"]
MOST_TUPLES = 40_000
"""60 slices of 100 halves, 60 of ten commits for each of 16 shards, and the bisections."""
AGO: LiteralString = "clock_timestamp() - make_interval(mins => %(ago)s, secs => 30)"
EVENT: LiteralString = f"""
WITH half AS (
    INSERT INTO outbox.half_message
        (half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id)
    SELECT (%(xid)s::int8 << 15) + (n << 4), n, {AGO}, 0, %(group)s, %(topic)s
    FROM generate_series(0, %(messages)s - 1) n RETURNING half_id
), decided AS (
    INSERT INTO outbox.commit_log (shard, xid, committed_at, half_ids, content_digests)
    SELECT 0, %(xid)s, {AGO}, array_agg(half_id), array_agg(0) FROM half
), seen AS (
    INSERT INTO outbox.publication_log (shard, to_xid, to_n, batch_no, from_xid, from_n,
        published_at, half_ids, partitions, offsets)
    SELECT 0, %(xid)s, %(messages)s, %(xid)s, %(xid)s, 0, {AGO}, array_agg(half_id), array_agg(0),
        array_agg(half_id) FROM half
)
INSERT INTO outbox.check_attempt
    (half_id, look_id, round, attempt, asked_at, outcome, latency_ms, counted, applied)
SELECT half_id, 1, 1, 1, {AGO}, %(outcome)s, 5, true, false FROM half
"""
"""Messages that one flush prepared, committed, published and checked some minutes ago."""


@pytest.fixture
def session(postgres_server: EmbeddedPostgres, template_database: str) -> Iterator[Connection]:
    """Yield a session of a database without messages."""
    url = make_database(postgres_server.database_url, template_database)
    with connect(url, "test") as opened:
        yield opened
    drop_database(postgres_server.database_url, url)


def tuples_read(session: Connection) -> int:
    """Return how many rows and index entries this session has read."""
    session.execute("SELECT pg_stat_force_next_flush()")
    session.execute("SELECT pg_stat_clear_snapshot()")
    row = session.execute(
        "SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE schemaname = 'outbox')"
        " + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = 'outbox')"
    ).fetchone()
    assert row is not None
    return int(row[0])


def series_in(rates: Rates) -> dict[str, RateSeries]:
    """Return the series by name."""
    return {each.name: each for each in rates.series}


def ids_of(message: Message) -> dict[str, object]:
    """Return the parameters of EVENT that all events share."""
    return {
        "group": message.producer_group_id,
        "topic": message.topic_id,
        "outcome": "unknown",
    }


def test_a_quiet_hour_is_counted_exactly(session: Connection) -> None:
    message = register(session, "invoices", "billing")
    ids = ids_of(message)
    for xid, ago, messages in (
        (1000, 90, 9),
        (1010, 59, 2),
        (1500, 10, 3),
        (1501, 10, 4),
        (1502, 0, 1),
    ):
        session.execute(EVENT, {**ids, "xid": xid, "ago": ago, "messages": messages})
    found = series_in(read_rates(session))
    assert list(found) == SERIES
    for series in found.values():
        counted = {minute: count for minute, count in enumerate(series.counts) if count}
        assert counted == {0: 2, 49: 7, 59: 1}, series.name
        assert (series.estimated, series.searched_back_to) == (False, None)


def test_an_installation_without_messages_did_nothing(session: Connection) -> None:
    found = series_in(read_rates(session))
    shown = {name: (sum(each.counts), each.estimated) for name, each in found.items()}
    assert shown == dict.fromkeys(SERIES, (0, False))


def test_a_large_flush_is_counted_whole(session: Connection) -> None:
    message = register(session, "invoices", "billing")
    ids = ids_of(message)
    session.execute(EVENT, {**ids, "xid": 1000, "ago": 5, "messages": 2000})
    found = series_in(read_rates(session))
    assert {name: each.counts[54] for name, each in found.items()} == dict.fromkeys(SERIES, 2000)


def test_a_long_hour_is_estimated_from_a_bounded_sample(session: Connection) -> None:
    message = register(session, "invoices", "billing")
    publish_history(session, message.producer_group_id, message.topic_id, HISTORY)
    before = tuples_read(session)
    found = series_in(read_rates(session))
    assert tuples_read(session) - before <= MOST_TUPLES
    for name in ("prepared", "committed"):
        assert found[name].estimated
        assert sum(found[name].counts) == pytest.approx(HISTORY, rel=0.2)


def test_checks_are_counted_as_far_back_as_they_are_looked_at(session: Connection) -> None:
    message = register(session, "invoices", "billing")
    ids = ids_of(message)
    for xid in range(1000, 1004):
        session.execute(EVENT, {**ids, "xid": xid, "ago": 2, "messages": 2000})
    checked = series_in(read_rates(session))["checked"]
    assert checked.counts[57] == 5000
    assert checked.searched_back_to is not None


def test_checks_are_counted_by_outcome_in_the_last_minutes_and_in_the_last_day(
    session: Connection,
) -> None:
    ids = ids_of(register(session, "invoices", "billing"))
    for xid, ago, messages, outcome in (
        (1000, 1500, 9, "timeout"),
        (1010, 1400, 2, "timeout"),
        (1011, 90, 4, "commit"),
        (1500, 5, 3, "timeout"),
        (1501, 4, 1, "commit"),
        (1502, 0, 7, "http_error"),
    ):
        event = {**ids, "xid": xid, "ago": ago, "messages": messages, "outcome": outcome}
        session.execute(EVENT, event)
    found = [(each.outcome, each.live, each.day) for each in read_rates(session).outcomes]
    assert found == [("commit", 1, 5), ("http_error", 7, 7), ("timeout", 0, 5)]
    assert not any(each.estimated for each in read_rates(session).outcomes)


def test_the_outcomes_of_a_long_day_are_estimated_from_a_bounded_sample(
    session: Connection,
) -> None:
    ids = ids_of(register(session, "invoices", "billing"))
    for xid in range(1000, 1120):
        outcome = "commit" if xid % 4 else "timeout"
        session.execute(EVENT, {**ids, "xid": xid, "ago": 90, "messages": 400, "outcome": outcome})
    before = tuples_read(session)
    found = {each.outcome: each for each in read_rates(session).outcomes}
    assert tuples_read(session) - before <= MOST_TUPLES
    assert all(each.estimated for each in found.values())
    assert sum(each.day for each in found.values()) == pytest.approx(48_000, rel=0.1)
