"""The times of records, while PostgreSQL's clock is set."""

from __future__ import annotations

import pytest

from checker.relay.record_clock import AHEAD_SECONDS, READ_SECONDS, RecordClock
from outbox.errors import KafkaTimeRefused
from tests.unit.checker.checks.fixtures_fakes import ManualClock

DAY = 86_400.0


class Host:
    """PostgreSQL's clock, and the monotonic clock of the relay."""

    def __init__(self) -> None:
        self.time = 100 * DAY
        self.clock = ManualClock()

    def pass_time(self, seconds: float) -> None:
        """Let both clocks go on."""
        self.time += seconds
        self.clock.seconds += seconds


def test_a_record_has_the_time_of_a_clock_that_was_set_meanwhile() -> None:
    host = Host()
    times = RecordClock(lambda: host.time, host.clock)
    assert times.stamp() == host.time * 1000
    host.pass_time(READ_SECONDS / 2)
    assert times.stamp() == host.time * 1000
    host.time += 2 * DAY
    host.pass_time(READ_SECONDS)
    assert times.stamp() == host.time * 1000


def test_a_clock_far_behind_what_kafka_has_taken_makes_no_record_old() -> None:
    host = Host()
    times = RecordClock(lambda: host.time, host.clock)
    taken = times.stamp()
    times.taken()
    host.time -= 8 * DAY
    host.pass_time(READ_SECONDS)
    assert times.stamp() == taken
    times.taken()
    host.time += 8 * DAY
    host.pass_time(READ_SECONDS)
    assert times.stamp() == host.time * 1000


def test_a_relay_that_starts_while_the_clock_is_far_behind_goes_on_where_the_last_one_was() -> None:
    host = Host()
    times = RecordClock(lambda: host.time, host.clock)
    times.taken_before(host.time + 8 * DAY)
    assert times.stamp() == (host.time + 8 * DAY) * 1000
    host.time += 8 * DAY
    host.pass_time(READ_SECONDS)
    assert times.stamp() == host.time * 1000


def test_a_clock_that_was_an_hour_ahead_or_whose_records_kafka_has_refused_is_followed_back() -> (
    None
):
    host = Host()
    times = RecordClock(lambda: host.time, host.clock)
    times.stamp()
    times.taken()
    for ahead in (AHEAD_SECONDS - READ_SECONDS, 365 * DAY):
        host.time += ahead
        host.pass_time(READ_SECONDS)
        times.stamp()
        if ahead < AHEAD_SECONDS:
            times.taken()
        host.time -= ahead
        host.pass_time(READ_SECONDS)
        assert times.stamp() == host.time * 1000


def test_a_time_that_kafka_takes_no_more_gives_way_until_kafka_refuses_postgresqls_too() -> None:
    host = Host()
    times = RecordClock(lambda: host.time, host.clock)
    taken = host.time + 8 * DAY
    for following in (host.time, taken, host.time):
        times.taken_before(taken)
        with pytest.raises(KafkaTimeRefused), times.trying():
            raise KafkaTimeRefused
        times.taken_before(taken)
        assert times.stamp() == following * 1000


def test_a_time_that_kafka_never_took_has_no_other() -> None:
    host = Host()
    times = RecordClock(lambda: host.time, host.clock)
    times.stamp()
    assert not times.refused()
    times.taken_before(host.time + 8 * DAY)
    times.stamp()
    assert times.refused()
