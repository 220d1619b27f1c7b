"""Any order of prepares, ends, checks, rechecks, crashes and restarts goes as a dictionary says.

The API answers over ASGI, the checks go out over HTTP, both on one PostgreSQL. A crash is a step
that fails on either side of its commit: the caller learns nothing, and says it again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from itertools import count
from typing import Any, TypeVar

import httpx2
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

from outbox.failpoints import FailpointRaised, arm
from outbox.message import ProducerGroup
from tests.contract.service_dictionary import (
    ANSWERS,
    BUSY,
    COMMIT,
    NOT_FOUND,
    ROLLBACK,
    SILENT,
    TICK,
    UNKNOWN,
    Asked,
    Dictionary,
)
from tests.contract.service_place import ServicePlace, leaf_of
from tests.integration.api.service import TOPIC

_T = TypeVar("_T")
EXAMPLES = count()
"""Groups are named by it, since all examples share one database."""
HALVES: Bundle[str] = Bundle("halves")
DRAWN = st.tuples(st.integers(0, 1), st.one_of(st.none(), st.integers(0, 3)), st.integers(0, 1))
DECISIONS = st.sampled_from([COMMIT, ROLLBACK])
SIDES = st.sampled_from(["before_commit", "after_commit"])
SAID = st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=4)
UNDECIDED = st.lists(st.sampled_from([UNKNOWN, NOT_FOUND, BUSY, SILENT]), min_size=1, max_size=2)
CHECKER_POINTS = st.sampled_from(
    ["checker.after_slice", "checker.after_call", "checker.before_commit", "checker.after_commit"]
)
INTERESTING = {"producer", "check", "policy", "check_max", "max_age", "resumed", "retired"}
"""Endings and turns that the runs must have reached, or they prove little."""
OPERATOR = {"operator": "night shift", "reason": "asked by the producer"}


class ServiceMachine(RuleBasedStateMachine):
    """Moves the service and the dictionary together."""

    database_url = ""
    reached: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._model = Dictionary()
        self._place = ServicePlace(self.database_url)
        self._groups: list[ProducerGroup] = []

    @initialize()
    def begin(self) -> None:
        """Register a group of either policy; the second rolls back after its last check."""
        self._run(self._place.open())
        self._run(self._place.next_leaf())
        example = next(EXAMPLES)
        for rolls_back in (False, True):
            name = f"group-{example}-{'rollback' if rolls_back else 'park'}"
            self._groups.append(self._run(self._place.register(name, rolls_back=rolls_back)))

    def teardown(self) -> None:
        """Compare everything that is stored, then let it go."""
        try:
            for message_id in self._model.messages:
                self._compare(message_id)
        finally:
            self._run(self._place.close())
            self._runner.close()

    # -- Producers -------------------------------------------------------------------------------

    @rule(target=HALVES, drawn=st.lists(DRAWN, min_size=2, max_size=5))
    def prepare(self, drawn: list[tuple[int, int | None, int]]) -> Any:
        """Prepares; repeats and misused transaction ids among them."""
        new = [
            self._prepared(asked, self._call("", _body(asked)))
            for asked in (self._asked(each) for each in drawn)
        ]
        return multiple(*(message_id for message_id in new if message_id is not None))

    @rule(target=HALVES, drawn=DRAWN, side=SIDES)
    def crash_while_preparing(self, drawn: tuple[int, int | None, int], side: str) -> Any:
        """The answer is lost; a transaction id makes the repeat harmless."""
        asked = self._asked(drawn)
        twin = self._model.twin_of(asked)
        lost = self._lose(f"api.prepare.{side}", "", _body(asked))
        answer = self._call("", _body(asked))
        if asked.transaction_id is not None and twin is None and lost:
            assert answer.status_code in (200, 201)
            replayed = answer.headers.get("idempotency-replayed") == "true"
            assert replayed == (side == "after_commit")
        message_id = self._prepared(asked, answer, retried=True)
        return multiple() if message_id is None else message_id

    @rule(half=HALVES, decision=st.sampled_from([COMMIT, ROLLBACK, UNKNOWN]))
    def end(self, half: str, decision: str) -> None:
        """An end; repeats and contradictions among them."""
        self._ended(half, decision, self._call(f"/{half}/end", {"decision": decision}))

    @rule(half=HALVES, decision=DECISIONS, side=SIDES)
    def crash_while_ending(self, half: str, decision: str, side: str) -> None:
        """The answer is lost; the repeat is told the truth."""
        known = self._model.messages[half]
        if known.retired:
            return
        lost = self._lose(f"api.end.{side}", f"/{half}/end", {"decision": decision})
        assert lost
        if side == "after_commit":
            known.decide(decision, "producer")
        self._ended(half, decision, self._call(f"/{half}/end", {"decision": decision}))

    # -- Checks ----------------------------------------------------------------------------------

    @rule(side=st.one_of(st.none(), SIDES))
    def sweep(self, side: str | None) -> None:
        """A sweep, or one that dies; nobody is queued twice and nobody is left out."""
        self._until_point(self._place.sweep(), f"sweep.{side}" if side else None)

    @rule(which=st.integers(0, 1), said=SAID, ticks=st.integers(0, 4))
    def check(self, which: int, said: list[str], ticks: int) -> None:
        """Time goes by; then everything that is due in a group is asked once."""
        self._pass_time(ticks)
        self._check(self._groups[which], said)

    @rule(which=st.integers(0, 1), said=UNDECIDED, times=st.integers(2, 8))
    def check_again_and_again(self, which: int, said: list[str], times: int) -> None:
        """The endpoint never decides: checks or age run out."""
        for _ in range(times):
            self._pass_time(3)
            self._check(self._groups[which], said)

    @rule(which=st.integers(0, 1), said=SAID, ticks=st.integers(2, 4), point=CHECKER_POINTS)
    def crash_while_checking(self, which: int, said: list[str], ticks: int, point: str) -> None:
        """A checker dies in a round; its successor asks what was not settled, and that alone."""
        self._pass_time(ticks)
        self._say(said)
        self._until_point(self._place.check(self._groups[which]), point)
        self._check(self._groups[which], said)

    @rule(half=HALVES)
    def recheck(self, half: str) -> None:
        """An operator has an undecided message asked now."""
        self._recheck(half)

    @precondition(lambda self: self._model.parked())
    @rule(number=st.integers(0, 9))
    def resume(self, number: int) -> None:
        """An operator has a parked message asked now: it begins anew."""
        parked = self._model.parked()
        self._recheck(parked[number % len(parked)])

    @rule()
    def restart(self) -> None:
        """The API ends in good order and starts again."""
        self._run(self._place.restart())

    # -- Storage ---------------------------------------------------------------------------------

    @rule()
    def retire(self) -> None:
        """Retention passes; whatever is still open keeps its leaf."""
        removed = self._run(self._place.retire())
        self._model.publish()
        for message_id, known in self._model.messages.items():
            if leaf_of(message_id) in removed and not known.retired:
                self._model.retire(message_id)
            self._compare(message_id)

    @rule()
    def settle_and_retire(self) -> None:
        """Everything ends and is looked at for the last time; then nothing of it stays."""
        for message_id, known in self._model.messages.items():
            if known.decision is None:
                self.end(message_id, ROLLBACK)
        self._run(self._place.sweep())
        self._pass_time(4)
        for group in self._groups:
            self._check(group, [UNKNOWN])
        self.retire()
        assert all(known.retired for known in self._model.messages.values())

    # -- How both are moved ----------------------------------------------------------------------

    def _pass_time(self, ticks: int) -> None:
        self._model.now += ticks * TICK
        self._run(self._place.pass_time(ticks * TICK))

    def _recheck(self, half: str) -> None:
        known = self._model.messages[half]
        answer = self._call(f"/{half}/recheck", OPERATOR)
        if known.retired:
            assert answer.status_code == 404
            return
        if known.decision is not None:
            assert (answer.status_code, answer.json()["code"]) == (409, "not-recheckable")
            return
        assert answer.status_code == 202, answer.text
        if known.parked:
            self.reached["resumed"] += 1
        self._model.recheck(known)

    def _asked(self, drawn: tuple[int, int | None, int]) -> Asked:
        group, number, value = drawn
        name = None if number is None else f"transaction-{number}"
        return Asked(self._groups[group].name, name, f"value-{value}")

    def _prepared(
        self, asked: Asked, answer: httpx2.Response, *, retried: bool = False
    ) -> str | None:
        """Hold an answer against the dictionary; return the id of a message that is new."""
        twin = self._model.twin_of(asked)
        if twin is None:
            assert answer.status_code == 201 or retried, answer.text
            message_id: str = answer.json()["message_id"]
            self._model.learn(message_id, asked)
            return message_id
        known = self._model.messages[twin]
        if known.asked.value != asked.value:
            assert (answer.status_code, answer.json()["code"]) == (422, "transaction-id-reused")
        else:
            told = answer.json()
            assert answer.status_code in (200, 201), answer.text
            assert (told["message_id"], told["state"]) == (twin, known.state)
        return None

    def _ended(self, half: str, decision: str, answer: httpx2.Response) -> None:
        known = self._model.messages[half]
        if known.retired:
            assert answer.status_code == 404
            return
        if decision != UNKNOWN:
            known.decide(decision, "producer")
        if decision not in (known.decision, UNKNOWN):
            assert answer.status_code == 409, answer.text
            assert answer.json()["winning_decision"] == known.decision
            return
        told = answer.json()
        assert answer.status_code == 200, answer.text
        assert (told["state"], told["decision"]) == (known.state, known.decision)
        assert told["decided_by"] == known.decided_by

    def _check(self, group: ProducerGroup, said: list[str]) -> None:
        self._say(said)
        self._run(self._place.check(group))
        rolls_back = group is self._groups[1]
        due = [message_id for message_id, _ in self._model.due(group.name)]
        self._model.check(group.name, self._place.answers, rolls_back=rolls_back)
        for message_id in due:
            self._compare(message_id)

    def _say(self, said: list[str]) -> None:
        """Give each message an answer of its own, the same however often it is asked."""
        self._place.answers = {
            message_id: said[n % len(said)] for n, message_id in enumerate(self._model.messages)
        }

    def _compare(self, message_id: str) -> None:
        """A message stands as the dictionary says: decision, checks, commit log (I4, I11-I13)."""
        known, shown = self._model.messages[message_id], self._run(self._place.read(message_id))
        if known.retired:
            assert shown["status"] == 404
            self.reached["retired"] += 1
            return
        assert (shown["state"], shown["decision"]) == (known.state, known.decision)
        parked = known.parked if known.state == "PARKED" else None
        assert (shown["decided_by"], shown["parked_reason"]) == (known.decided_by, parked)
        self.reached[known.decided_by or known.parked or "open"] += 1
        assert self._run(self._place.attempts(message_id)) == known.attempts
        assert self._run(self._place.listed(message_id)) == (known.decision == COMMIT)

    def _call(self, path: str, body: dict[str, Any]) -> httpx2.Response:
        return self._run(self._place.call(path, body))

    def _lose(self, point: str, path: str, body: dict[str, Any]) -> bool:
        """Make a call that fails at a point; tell whether it came there."""
        arm(f"{point}=raise#1")
        answer = self._call(path, body)
        arm(None)
        return answer.status_code >= 500

    def _until_point(self, work: Coroutine[Any, Any, None], point: str | None) -> None:
        """Let the checker work until it is done or dies at the point."""
        arm(f"{point}=raise#1" if point else None)
        with suppress(FailpointRaised, ExceptionGroup):
            self._run(work)
        arm(None)

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return self._runner.run(work)


def _body(asked: Asked) -> dict[str, Any]:
    body = {"producer_group": asked.group, "topic": TOPIC, "key": "k", "value": asked.value}
    return (
        body if asked.transaction_id is None else {**body, "transaction_id": asked.transaction_id}
    )


@pytest.mark.postgres
def test_the_service_answers_and_checks_as_a_dictionary_would(database_url: str) -> None:
    """A failure is told as it was found: making it smaller would take minutes of restarts."""

    class Here(ServiceMachine):
        pass

    Here.database_url, Here.reached = database_url, Counter()
    run_state_machine_as_test(
        Here,
        settings=settings(
            derandomize=True,
            deadline=None,
            database=None,
            max_examples=12,
            stateful_step_count=24,
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
    assert Here.reached.keys() >= INTERESTING
