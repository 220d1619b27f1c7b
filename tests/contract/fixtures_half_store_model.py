"""The model of a HalfStore: a dictionary of contents and first decisions."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from outbox.messages.message import (
    AlreadyDecided,
    DecidedBy,
    End,
    Ended,
    EndOutcome,
    HalfMessage,
    Message,
    NoSuchMessage,
    Prepared,
    PrepareOutcome,
    Resolution,
    State,
    TransactionIdReused,
)
from outbox.messages.message_id import HalfId

STATE_OF: Final = {Resolution.COMMIT: State.COMMITTED, Resolution.ROLLBACK: State.ROLLED_BACK}


@dataclass(slots=True)
class Known:
    """A client's knowledge of its own message."""

    prepared: Prepared
    decision: Resolution | None = None
    decided_by: DecidedBy | None = None

    @property
    def half(self) -> HalfMessage:
        """The message that is ended."""
        return self.prepared.half

    @property
    def state(self) -> State:
        """The state of the message."""
        return State.PREPARED if self.decision is None else STATE_OF[self.decision]


@dataclass(slots=True)
class Dictionary:
    """The whole model of a HalfStore."""

    messages: dict[HalfId, Known] = field(default_factory=dict)
    first: dict[tuple[int, str], HalfId] = field(default_factory=dict)
    """The message that each transaction id of a group belongs to."""
    commits: list[HalfId] = field(default_factory=list)

    def check_prepared(self, message: Message, answer: PrepareOutcome) -> HalfId | None:
        """Compare an answer with the dictionary; return the id of a new message."""
        known = self._known(message)
        if known is None:
            assert isinstance(answer, Prepared)
            assert (answer.half.message, answer.state) == (message, State.PREPARED)
            return self._learn(answer)
        if known.half.message != message:
            assert isinstance(answer, TransactionIdReused)
            assert answer.existing_message_id == known.half.message_id
        elif known.decision is not None:
            assert isinstance(answer, AlreadyDecided)
            assert answer.status.half_id == known.half.half_id
            self.check_status(known, Ended(status=answer.status, already_ended=True))
        else:
            assert answer == replace(known.prepared, state=known.state, replayed=True)
        return None

    def check_ended(self, ends: Sequence[End], answers: Sequence[EndOutcome]) -> None:
        """Compare the answers of one flush with the dictionary and store the first decisions.

        All ends of a flush happen at once: an UNKNOWN may return the state before or after it.
        """
        before = {half_id: copy(known) for half_id, known in self.messages.items()}
        for end, answer in zip(ends, answers, strict=True):
            if end.decision is not Resolution.UNKNOWN:
                self._check_decision(end, answer)
        for end, answer in zip(ends, answers, strict=True):
            if end.decision is Resolution.UNKNOWN:
                self._check_unknown(before, end, answer)

    def check_status(self, known: Known, answer: Ended) -> None:
        """Compare a status with the known message."""
        assert _shown(answer) == (known.state, known.decision, known.decided_by)

    def decide(self, known: Known, end: End) -> None:
        """Store the first decision of a message."""
        known.decision, known.decided_by = end.decision, end.decided_by
        if end.decision is Resolution.COMMIT:
            halves = (known.half, *known.prepared.followers)
            self.commits += [half.half_id for half in halves]

    def _check_decision(self, end: End, answer: EndOutcome) -> None:
        known = self._within_reach(end)
        if known is None:
            assert answer == NoSuchMessage()
            return
        assert isinstance(answer, Ended)
        stood = known.decision
        if stood is None:
            self.decide(known, end)
        assert answer.already_ended == (stood is not None)
        assert answer.conflict == (known.decision is not end.decision)
        self.check_status(known, answer)

    def _check_unknown(self, before: dict[HalfId, Known], end: End, answer: EndOutcome) -> None:
        known = self._within_reach(end)
        if known is None:
            assert answer == NoSuchMessage()
            return
        assert isinstance(answer, Ended)
        state, decision, decided_by = _shown(answer)
        possible = (before[end.half_id], known)
        assert (state, decision, decided_by) in [
            (k.state, k.decision, k.decided_by) for k in possible
        ]
        assert (answer.already_ended, answer.conflict) == (decision is not None, False)

    def _within_reach(self, end: End) -> Known | None:
        """Return the message that an end may touch: its random bits and its group must fit."""
        known = self.messages.get(end.half_id)
        if known is None or known.half.nonce != end.nonce:
            return None
        own = end.groups is None or known.half.message.producer_group_id in end.groups
        return known if own else None

    def _known(self, message: Message) -> Known | None:
        if message.transaction_id is None:
            return None
        half_id = self.first.get((message.producer_group_id, message.transaction_id))
        return None if half_id is None else self.messages[half_id]

    def _learn(self, prepared: Prepared) -> HalfId:
        half = prepared.half
        assert half.half_id not in self.messages
        self.messages[half.half_id] = Known(prepared)
        if half.message.transaction_id is not None:
            key = (half.message.producer_group_id, half.message.transaction_id)
            self.first[key] = half.half_id
        return half.half_id


def _shown(answer: Ended) -> tuple[State, Resolution | None, DecidedBy | None]:
    op, state = answer.status.op, answer.status.state
    return (state, op.decision, op.decided_by) if op else (state, None, None)
