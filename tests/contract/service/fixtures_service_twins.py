"""The service and the dictionary side by side: the same steps, and a comparison."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

import httpx2

from outbox.checks.producer_group import ProducerGroup
from outbox.failpoints import FailpointRaised, arm
from tests.contract.service.fixtures_service import ServicePlace
from tests.contract.service.fixtures_service_model import (
    COMMIT,
    ROLLBACK,
    TICK,
    UNKNOWN,
    Asked,
    Dictionary,
)
from tests.integration.api.fixtures_service import TOPIC

_T = TypeVar("_T")
OPERATOR: Final = {"operator": "night shift", "reason": "asked by the producer"}


SEVERAL: Final = "value-1"
"""The value of those that are prepared with a follower."""


class ServiceTwins:
    """One example: a service on its own database, two groups, and a dictionary."""

    def __init__(self, database_url: str, reached: Counter[str]) -> None:
        self._runner = asyncio.Runner()
        self.model = Dictionary()
        self.place = ServicePlace(database_url)
        self.groups: list[ProducerGroup] = []
        self.reached = reached

    def open(self) -> None:
        """Register a group of either policy; the second rolls back after its last check."""
        self.run(self.place.open())
        for rolls_back in (False, True):
            name = "rolls-back" if rolls_back else "parks"
            self.groups.append(self.run(self.place.register(name, rolls_back=rolls_back)))

    def close(self) -> None:
        """Compare everything that is stored, then close it."""
        try:
            for message_id in self.model.messages:
                self.compare(message_id)
        finally:
            self.run(self.place.close())
            self._runner.close()

    def pass_time(self, ticks: int) -> None:
        """Let ticks pass."""
        self.model.now += ticks * TICK
        self.run(self.place.pass_time(ticks * TICK))

    def roll_back_unknown(self) -> None:
        """End a message whose producer lost the answer to the prepare."""
        for message_id in self.run(self.place.undecided()):
            if message_id not in self.model.messages:
                answer = self.call(f"/{message_id}/end", {"decision": ROLLBACK})
                assert answer.status_code == 200, answer.text

    def recheck(self, half: str) -> None:
        """Recheck a message now, if that is possible."""
        known = self.model.messages[half]
        answer = self.call(f"/{half}/recheck", OPERATOR)
        if known.retired:
            assert answer.status_code == 404
            return
        if known.decision is not None:
            assert (answer.status_code, answer.json()["code"]) == (409, "not-recheckable")
            return
        assert answer.status_code == 202, answer.text
        if known.parked:
            self.reached["resumed"] += 1
        self.model.recheck(known)

    def asked(self, drawn: tuple[int, int | None, int]) -> Asked:
        """Return a drawn prepare as its producer remembers it."""
        group, number, value = drawn
        name = None if number is None else f"transaction-{number}"
        return Asked(self.groups[group].name, name, f"value-{value}")

    def prepared(
        self, asked: Asked, answer: httpx2.Response, *, retried: bool = False
    ) -> str | None:
        """Compare an answer with the dictionary; return the id of a new message."""
        twin = self.model.twin_of(asked)
        if twin is None:
            assert answer.status_code == 201 or retried, answer.text
            message_id: str = answer.json()["message_id"]
            self.model.learn(message_id, asked)
            return message_id
        known = self.model.messages[twin]
        if known.asked.value != asked.value:
            assert (answer.status_code, answer.json()["code"]) == (422, "transaction-id-reused")
        elif known.decision is not None:
            shown = answer.json()
            assert (answer.status_code, shown["code"]) == (409, "already-ended"), answer.text
            said = (shown["message_id"], shown["winning_decision"], shown["decided_by"])
            assert said == (twin, known.decision, known.decided_by)
        else:
            shown = answer.json()
            assert answer.status_code == 201, answer.text
            assert (shown["message_id"], shown["state"]) == (twin, known.state)
        return None

    def ended(self, half: str, decision: str, answer: httpx2.Response) -> None:
        """Compare the answer to an end with the dictionary."""
        known = self.model.messages[half]
        if known.retired:
            assert answer.status_code == 404
            return
        if decision != UNKNOWN:
            known.decide(decision, "producer")
        if decision not in (known.decision, UNKNOWN):
            assert answer.status_code == 409, answer.text
            assert answer.json()["winning_decision"] == known.decision
            return
        shown = answer.json()
        assert answer.status_code == 200, answer.text
        assert (shown["state"], shown["decision"]) == (known.state, known.decision)
        assert shown["decided_by"] == known.decided_by

    def check(self, group: ProducerGroup, said: list[str]) -> None:
        """Run the checks of a group; then compare the due messages with the dictionary."""
        self.say(said)
        self.run(self.place.check(group))
        rolls_back = group is self.groups[1]
        due = [message_id for message_id, _ in self.model.due(group.name)]
        self.model.check(group.name, self.place.answers, rolls_back=rolls_back)
        for message_id in due:
            self.compare(message_id)

    def say(self, said: list[str]) -> None:
        """Give each message its own answer, the same at every check."""
        self.place.answers = {
            message_id: said[n % len(said)] for n, message_id in enumerate(self.model.messages)
        }

    def compare(self, message_id: str) -> None:
        """Compare a message with the dictionary: decision, checks, commit log (I4, I11-I13)."""
        known, shown = self.model.messages[message_id], self.run(self.place.read(message_id))
        if known.retired:
            assert shown["status"] == 404
            self.reached["retired"] += 1
            return
        assert (shown["state"], shown["decision"]) == (known.state, known.decision)
        parked = known.parked if known.state == "PARKED" else None
        assert (shown["decided_by"], shown["parked_reason"]) == (known.decided_by, parked)
        self.reached[known.decided_by or known.parked or "open"] += 1
        assert self.run(self.place.attempts(message_id)) == known.attempts
        assert (shown["message_ids"] is not None) == (known.asked.value == SEVERAL)
        for each in shown["message_ids"] or (message_id,):
            assert self.run(self.place.read(each))["state"] == known.state
            assert self.run(self.place.listed(each)) == (known.decision == COMMIT)

    def call(self, path: str, body: dict[str, Any]) -> httpx2.Response:
        """Say something about half messages."""
        return self.run(self.place.call(path, body))

    def lose(self, point: str, path: str, body: dict[str, Any]) -> bool:
        """Make a call that fails at a point; return whether it reached the point."""
        arm(f"{point}=raise#1")
        answer = self.call(path, body)
        arm(None)
        return answer.status_code >= 500

    def until_point(self, work: Coroutine[Any, Any, None], point: str | None) -> None:
        """Let the checker work until it is done or dies at the point."""
        arm(f"{point}=raise#1" if point else None)
        with suppress(FailpointRaised, ExceptionGroup):
            self.run(work)
        arm(None)

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine to its end."""
        return self._runner.run(work)


def prepare_body(asked: Asked) -> dict[str, Any]:
    """Return the request of a prepare."""
    content: dict[str, Any] = {"topic": TOPIC, "key": "k", "value": asked.value}
    if asked.value == SEVERAL:
        content = {"messages": [content, {**content, "key": "another"}]}
    return {"producer_group": asked.group, "transaction_id": asked.transaction_id, **content}
