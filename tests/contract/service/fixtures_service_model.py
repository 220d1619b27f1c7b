"""The model of the service: a dictionary of contents, decisions, and the state of checks.

Time is a number that tests move; PostgreSQL's clock adds less to it than any margin used here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

IMMUNITY, INTERVAL, CHECK_MAX, MAX_AGE = 600, 1000, 3, 6600
TICK: Final = 400
"""Time moves by this: everything is due 200 s before or after a tick, never at one."""

COMMIT, ROLLBACK, UNKNOWN = "COMMIT", "ROLLBACK", "UNKNOWN"
NOT_FOUND, BUSY, SILENT = "404", "429", "silent"
ANSWERS: Final = (COMMIT, ROLLBACK, UNKNOWN, NOT_FOUND, BUSY, SILENT)
SPENT: Final = {UNKNOWN, NOT_FOUND}
OUTCOME: Final = {
    COMMIT: "commit",
    ROLLBACK: "rollback",
    UNKNOWN: "unknown",
    NOT_FOUND: "http_error",
    BUSY: "http_error",
    SILENT: "unreachable",
}
STATE: Final = {COMMIT: "COMMITTED", ROLLBACK: "ROLLED_BACK"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A prepare as its producer knows it."""

    group: str
    transaction_id: str | None
    value: str


@dataclass(slots=True)
class Known:
    """One message and all facts that depend on it."""

    asked: Asked
    due: int
    age_from: int
    spent: int = 0
    only_unknown: bool = True
    decision: str | None = None
    decided_by: str | None = None
    parked: str | None = None
    published: bool = False
    retired: bool = False
    attempts: list[tuple[int, str, bool]] = field(default_factory=list)
    """Each stored check: attempt, outcome, whether it was spent."""

    @property
    def state(self) -> str:
        """The state, in the API's word."""
        if self.decision == COMMIT and self.published:
            return "PUBLISHED"
        if self.decision is not None:
            return STATE[self.decision]
        return "PARKED" if self.parked else "PREPARED"

    @property
    def waits(self) -> bool:
        """Whether it waits in the check queue."""
        return self.decision is None and self.parked is None

    def decide(self, decision: str, decided_by: str) -> None:
        """Store a decision; the first is final (G2)."""
        if self.decision is None:
            self.decision, self.decided_by = decision, decided_by


@dataclass(slots=True)
class Dictionary:
    """The state of an ideal service."""

    now: int = 0
    messages: dict[str, Known] = field(default_factory=dict)
    first: dict[tuple[str, str], str] = field(default_factory=dict)
    """The message that each transaction id of a group belongs to."""

    def twin_of(self, asked: Asked) -> str | None:
        """Return the message that a prepare repeats, or whose transaction id it misuses."""
        if asked.transaction_id is None:
            return None
        return self.first.get((asked.group, asked.transaction_id))

    def learn(self, message_id: str, asked: Asked) -> None:
        """Store a new message."""
        assert message_id not in self.messages
        self.messages[message_id] = Known(asked, due=self.now + IMMUNITY, age_from=self.now)
        if asked.transaction_id is not None:
            self.first[(asked.group, asked.transaction_id)] = message_id

    def publish(self) -> None:
        """Mark all committed messages as published."""
        for known in self.messages.values():
            known.published = known.decision == COMMIT

    def retire(self, message_id: str) -> None:
        """Remove an ended message; its transaction id is free again."""
        known = self.messages[message_id]
        assert known.state in ("PUBLISHED", "ROLLED_BACK")
        known.retired = True
        self.first = {asked: first for asked, first in self.first.items() if first != message_id}

    def parked(self) -> list[str]:
        """Return the parked messages."""
        return [message_id for message_id, one in self.messages.items() if one.state == "PARKED"]

    def due(self, group: str) -> Iterator[tuple[str, Known]]:
        """Return the messages of a group that are due."""
        for message_id, known in self.messages.items():
            if known.asked.group == group and known.waits and known.due <= self.now:
                yield message_id, known

    def check(self, group: str, answers: Mapping[str, str], *, rolls_back: bool) -> None:
        """Process everything once that is due in a group."""
        for message_id, known in list(self.due(group)):
            self._look(known, answers.get(message_id, UNKNOWN), rolls_back=rolls_back)

    def recheck(self, known: Known) -> None:
        """Make an undecided message due now; a parked one starts again (P48)."""
        if known.parked:
            known.parked, known.spent, known.only_unknown = None, 0, True
            known.age_from = self.now
        known.due = self.now

    def _look(self, known: Known, answer: str, *, rolls_back: bool) -> None:
        aged = self.now - known.age_from >= MAX_AGE
        if known.spent < CHECK_MAX:
            self._ask(known, answer)
            known.parked = "max_age" if aged and known.decision is None else None
        elif aged:
            known.parked = "max_age"
        elif rolls_back and known.only_unknown:
            known.decide(ROLLBACK, "policy")
        else:
            known.parked = "check_max"

    def _ask(self, known: Known, answer: str) -> None:
        known.attempts.append((known.spent + 1, OUTCOME[answer], answer in SPENT))
        if answer in (COMMIT, ROLLBACK):
            known.decide(answer, "check")
            return
        if answer in SPENT:
            known.spent += 1
            known.only_unknown = known.only_unknown and answer == UNKNOWN
        known.due = self.now + INTERVAL
