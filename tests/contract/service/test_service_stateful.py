"""Any order of prepares, ends, checks, rechecks, crashes and restarts agrees with a dictionary.

The API answers over ASGI, the checks go out over HTTP, both on one PostgreSQL. A crash is a step
that fails on either side of its commit: the caller gets no answer, and repeats the call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from devservers.postgres import EmbeddedPostgres
from outbox.failpoints import arm
from tests.contract.service.fixtures_service import leaf_of
from tests.contract.service.fixtures_service_model import (
    ANSWERS,
    BUSY,
    COMMIT,
    NOT_FOUND,
    ROLLBACK,
    SILENT,
    UNKNOWN,
)
from tests.contract.service.fixtures_service_twins import ServiceTwins, prepare_body
from tests.fixtures_databases import drop_database, make_database

pytestmark = pytest.mark.deep

HALVES: Bundle[str] = Bundle("halves")
DRAWN = st.tuples(st.integers(0, 1), st.one_of(st.none(), st.integers(0, 3)), st.integers(0, 1))
DECISIONS = st.sampled_from([COMMIT, ROLLBACK])
SIDES = st.sampled_from(["before_commit", "after_commit"])
SAID = st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=4)
UNDECIDED = st.lists(st.sampled_from([UNKNOWN, NOT_FOUND, BUSY, SILENT]), min_size=1, max_size=2)
NEVER_DECIDING = st.one_of(st.just([UNKNOWN]), UNDECIDED)
CHECKER_POINTS = st.sampled_from(
    ["checker.after_slice", "checker.after_call", "checker.before_commit", "checker.after_commit"]
)


class ServiceMachine(RuleBasedStateMachine):
    """Moves the service and the dictionary together."""

    make_database: Callable[[], str]
    drop_database: Callable[[str], None]
    reached: ClassVar[Counter[str]]

    def __init__(self) -> None:
        super().__init__()
        self._database_url = self.make_database()
        self._both = ServiceTwins(self._database_url, self.reached)
        self._gone: set[int] = set()

    @initialize()
    def begin(self) -> None:
        """Start the service with two groups."""
        self._both.open()

    def teardown(self) -> None:
        """Compare everything that is stored, then close it."""
        self._both.close()
        self.drop_database(self._database_url)

    def messages(self) -> Iterable[str]:
        """Return the ids that the producers know, oldest first."""
        return self._both.model.messages

    # -- Producers -------------------------------------------------------------------------------

    @rule(target=HALVES, drawn=st.lists(DRAWN, min_size=2, max_size=5))
    def prepare(self, drawn: list[tuple[int, int | None, int]]) -> Any:
        """Prepares; repeats and misused transaction ids among them."""
        new = [
            self._both.prepared(asked, self._both.call("", prepare_body(asked)))
            for asked in (self._both.asked(each) for each in drawn)
        ]
        return multiple(*(message_id for message_id in new if message_id is not None))

    @rule(target=HALVES, drawn=DRAWN, side=SIDES)
    def crash_while_preparing(self, drawn: tuple[int, int | None, int], side: str) -> Any:
        """The answer is lost; a transaction id makes the repeat harmless."""
        asked = self._both.asked(drawn)
        twin = self._both.model.twin_of(asked)
        lost = self._both.lose(f"api.prepare.{side}", "", prepare_body(asked))
        answer = self._both.call("", prepare_body(asked))
        if asked.transaction_id is not None and twin is None and lost:
            assert answer.status_code in (200, 201)
            replayed = answer.headers.get("idempotency-replayed") == "true"
            assert replayed == (side == "after_commit")
        message_id = self._both.prepared(asked, answer, retried=True)
        return multiple() if message_id is None else message_id

    @rule(half=HALVES, decision=st.sampled_from([COMMIT, ROLLBACK, UNKNOWN]))
    def end(self, half: str, decision: str) -> None:
        """An end; repeats and contradictions among them."""
        self._both.ended(half, decision, self._both.call(f"/{half}/end", {"decision": decision}))

    @rule(half=HALVES, decision=DECISIONS, side=SIDES)
    def crash_while_ending(self, half: str, decision: str, side: str) -> None:
        """The answer is lost; the repeat returns the true state."""
        known = self._both.model.messages[half]
        if known.retired:
            return
        lost = self._both.lose(f"api.end.{side}", f"/{half}/end", {"decision": decision})
        assert lost
        if side == "after_commit":
            known.decide(decision, "producer")
        self._both.ended(half, decision, self._both.call(f"/{half}/end", {"decision": decision}))

    def compare(self, half: str) -> None:
        """Compare one message with the dictionary."""
        self._both.compare(half)

    # -- Checks ----------------------------------------------------------------------------------

    @rule(side=st.one_of(st.none(), SIDES))
    def sweep(self, side: str | None) -> None:
        """A sweep, or one that dies; each half is queued exactly once."""
        self._both.until_point(self._both.place.sweep(), f"sweep.{side}" if side else None)

    @rule(which=st.integers(0, 1), said=SAID, ticks=st.integers(0, 4))
    def check(self, which: int, said: list[str], ticks: int) -> None:
        """Time passes; then everything that is due in a group is asked once."""
        self._both.pass_time(ticks)
        self._both.check(self._both.groups[which], said)

    @rule(which=st.integers(0, 1), said=NEVER_DECIDING, times=st.integers(2, 8))
    def check_again_and_again(self, which: int, said: list[str], times: int) -> None:
        """The endpoint never decides: checks or age run out."""
        for _ in range(times):
            self._both.pass_time(3)
            self._both.check(self._both.groups[which], said)

    @rule(which=st.integers(0, 1), said=SAID, ticks=st.integers(2, 4), point=CHECKER_POINTS)
    def crash_while_checking(self, which: int, said: list[str], ticks: int, point: str) -> None:
        """A checker dies in a round; the next one asks only about halves that were not settled."""
        self._both.pass_time(ticks)
        self._both.say(said)
        self._both.until_point(self._both.place.check(self._both.groups[which]), point)
        self._both.check(self._both.groups[which], said)

    @rule(half=HALVES)
    def recheck(self, half: str) -> None:
        """An operator rechecks an undecided message."""
        self._both.recheck(half)

    @precondition(lambda self: self._both.model.parked())
    @rule(number=st.integers(0, 9))
    def resume(self, number: int) -> None:
        """An operator rechecks a parked message: it starts again."""
        parked = self._both.model.parked()
        self._both.recheck(parked[number % len(parked)])

    @rule()
    def restart(self) -> None:
        """The API stops cleanly and starts again."""
        self._both.run(self._both.place.restart())

    # -- Storage ---------------------------------------------------------------------------------

    @rule()
    def retire(self) -> None:
        """Retention passes; an open message outlives its leaf."""
        self._gone |= self._both.run(self._both.place.retire())
        self._both.model.publish()
        for message_id, known in self._both.model.messages.items():
            ended = known.decision is not None and not known.retired
            if ended and leaf_of(message_id) in self._gone:
                self._both.model.retire(message_id)
            self._both.compare(message_id)

    @rule()
    def settle_and_retire(self) -> None:
        """Everything ends and is compared for the last time; then all is removed."""
        for message_id, known in self._both.model.messages.items():
            if known.decision is None:
                self.end(message_id, ROLLBACK)
        self._both.roll_back_unknown()
        self._both.run(self._both.place.sweep())
        self._both.pass_time(4)
        for group in self._both.groups:
            self._both.check(group, [UNKNOWN])
        self.retire()
        assert all(known.retired for known in self._both.model.messages.values())


@pytest.fixture
def machine(
    postgres_server: EmbeddedPostgres, template_database: str
) -> Iterator[type[ServiceMachine]]:
    """Yield the machine with a storage for its databases; it counts the states that it reached."""
    server_url = postgres_server.database_url

    class Here(ServiceMachine):
        make_database = partial(make_database, server_url, template_database)
        drop_database = partial(drop_database, server_url)
        reached: ClassVar = Counter[str]()

    yield Here
    arm(None)


@pytest.mark.postgres
def test_the_service_answers_and_checks_as_a_dictionary_would(
    machine: type[ServiceMachine],
) -> None:
    """A failure is reported as it was found: shrinking it would take minutes of restarts."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            derandomize=True,
            deadline=None,
            database=None,
            max_examples=8,
            stateful_step_count=24,
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
    assert machine.reached.keys() >= {"producer", "check", "retired"}
