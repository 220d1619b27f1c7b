from __future__ import annotations

from collections.abc import Callable
from itertools import count
from threading import Event

import pytest

from checker.relay import threads as relay_threads
from checker.relay.shard_relay import RelayRound
from checker.relay.threads import Admission, RelayThreads
from outbox.clock import SystemClock
from outbox.errors import DatabaseUnavailable
from outbox.postgres.relay.commit_watch import PostgresCommitWatch
from outbox.relay.protocol.state import Phase

BOUND_SECONDS = 10.0


def rest(
    seconds: float, *, until_commits: bool, published: int = 0, failed: bool = False
) -> RelayRound:
    """Return a round after which a relay rests."""
    return RelayRound(Phase.RUN, published, seconds, until_commits, None, failed)


class CountingRelay:
    """A relay that counts its steps and then returns the given rest."""

    def __init__(self, rest: RelayRound, enough: int, done: Event) -> None:
        self._rest = rest
        self._enough = enough
        self._done = done
        self.steps = 0
        self.closed = False

    def run_once(self) -> RelayRound:
        self.steps += 1
        if self.steps >= self._enough:
            self._done.set()
        return self._rest

    def close(self) -> None:
        self.closed = True


class Watch(PostgresCommitWatch):
    """Returns what a test sets, and raises once in between."""

    def __init__(self, fresh: Callable[[], frozenset[int]]) -> None:
        self._answer = fresh
        self.calls = 0
        self.closed = False

    def fresh_shards(self) -> frozenset[int]:
        self.calls += 1
        if self.calls == 1:
            raise DatabaseUnavailable("unavailable")
        return self._answer()

    def close(self) -> None:
        self.closed = True


def admitted() -> Admission:
    return Admission.ADMITTED


def test_no_relay_starts_before_the_servers_are_found_safe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relay_threads, "ADMISSION_SECONDS", 0.0)
    done = Event()
    answers = [Admission.UNREACHABLE, Admission.REFUSED, Admission.ADMITTED]
    left_when_opened: list[int] = []

    def open_relay(_: int) -> CountingRelay:
        left_when_opened.append(len(answers))
        return CountingRelay(rest(3600, until_commits=True), 1, done)

    threads = RelayThreads([0], open_relay, Watch(frozenset), SystemClock(), lambda: answers.pop(0))
    threads.start()
    assert done.wait(BOUND_SECONDS)
    threads.stop()
    assert left_when_opened == [0]


def test_a_refused_relay_stays_silent_and_one_that_waits_for_a_server_does_not() -> None:
    class Clock(SystemClock):
        now_seconds = 0.0

        def monotonic(self) -> float:
            return self.now_seconds

    def silence(answer: Admission) -> float:
        clock, asked = Clock(), Event()

        def admit() -> Admission:
            clock.now_seconds = 100.0
            asked.set()
            return answer

        threads = RelayThreads([0], lambda _: pytest.fail("opened"), Watch(frozenset), clock, admit)
        threads.start()
        assert asked.wait(BOUND_SECONDS)
        threads.stop()
        return threads.silent_seconds()

    assert silence(Admission.REFUSED) == 100.0
    assert silence(Admission.UNREACHABLE) == 0.0


@pytest.mark.parametrize("failed", [True, False])
def test_a_relay_whose_rounds_all_fail_is_silent(failed: bool) -> None:
    done, ticks = Event(), count()

    class Clock(SystemClock):
        def monotonic(self) -> float:
            return float(next(ticks))

    failing = rest(0.001, until_commits=False, failed=failed)
    relay = CountingRelay(failing, 50, done)
    threads = RelayThreads([0], lambda _: relay, Watch(frozenset), Clock(), admitted)
    threads.start()
    assert done.wait(BOUND_SECONDS)
    before = next(ticks)
    progress = before - threads.silent_seconds()
    threads.stop()
    assert (progress < 5) is failed


def test_a_new_commit_ends_the_rest_of_its_shard_alone() -> None:
    done, other = Event(), Event()
    relays = {
        3: CountingRelay(rest(3600, until_commits=True), 3, done),
        4: CountingRelay(rest(3600, until_commits=True), 2, other),
    }
    watch = Watch(lambda: frozenset({3}))
    threads = RelayThreads(list(relays), relays.__getitem__, watch, SystemClock(), admitted)
    threads.start()
    assert done.wait(BOUND_SECONDS)
    threads.stop()
    assert relays[4].steps == 1
    assert all(relay.closed for relay in relays.values())
    assert watch.closed


def test_a_relay_that_raises_is_opened_again() -> None:
    done = Event()
    opened: list[CountingRelay] = []

    class Broken(CountingRelay):
        def run_once(self) -> RelayRound:
            super().run_once()
            raise ValueError("bug")

    def open_relay(_: int) -> CountingRelay:
        kind = CountingRelay if opened else Broken
        opened.append(kind(rest(3600, until_commits=True), 1, done if opened else Event()))
        return opened[-1]

    threads = RelayThreads([0], open_relay, Watch(frozenset), SystemClock(), admitted)
    threads.start()
    assert done.wait(BOUND_SECONDS)
    threads.stop()
    assert [relay.closed for relay in opened] == [True, True]
    assert threads.silent_seconds() < BOUND_SECONDS
