"""A HalfStore in memory: for tests that need no server, and as a readable model.

It passes the same contract suite as PostgreSQL. A flush is one critical section here, since nothing
awaits inside it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from outbox.clock import Clock, SystemClock
from outbox.messages.message import (
    AlreadyDecided,
    End,
    Ended,
    EndOutcome,
    HalfMessage,
    Message,
    MessageStatus,
    NoSuchMessage,
    OpMessage,
    Prepared,
    PrepareOutcome,
    Resolution,
    TransactionIdReused,
)
from outbox.messages.message_id import NONCE_BITS, HalfId, Nonce, half_id_of, shard_of
from outbox.messages.record import digest_of
from outbox.messages.state_machine import contradicts, derive
from outbox.postgres.messages.half_rows import same_request


@dataclass(slots=True)
class MemoryHalfStore:
    """A HalfStore whose tables are dictionaries; ``clock`` is the database's clock."""

    clock: Clock = field(default_factory=SystemClock)
    halves: dict[HalfId, HalfMessage] = field(default_factory=dict)
    ops: dict[HalfId, OpMessage] = field(default_factory=dict)
    commit_log: list[HalfId] = field(default_factory=list)
    _transaction_keys: dict[tuple[int, str], HalfId] = field(default_factory=dict)
    _xid: int = 0

    async def prepare(self, messages: Sequence[Message]) -> Sequence[PrepareOutcome]:
        """Store half messages; see HalfStore.prepare."""
        self._xid += 1
        return [self._prepare_one(message, row) for row, message in enumerate(messages)]

    async def end(self, ends: Sequence[End]) -> Sequence[EndOutcome]:
        """Decide half messages; see HalfStore.end."""
        return [self._end_one(end) for end in ends]

    def _prepare_one(self, message: Message, row: int) -> PrepareOutcome:
        known = self._known(message)
        if known is not None:
            return self._replay(known, message)
        half = self._half(message, row)
        self.halves[half.half_id] = half
        if message.transaction_id is not None:
            key = (message.producer_group_id, message.transaction_id)
            self._transaction_keys[key] = half.half_id
        return Prepared(half=half)

    def _known(self, message: Message) -> HalfMessage | None:
        if message.transaction_id is None:
            return None
        key = (message.producer_group_id, message.transaction_id)
        half_id = self._transaction_keys.get(key)
        return None if half_id is None else self.halves[half_id]

    def _replay(self, half: HalfMessage, message: Message) -> PrepareOutcome:
        if not same_request(half.message, message):
            return TransactionIdReused(existing_message_id=half.message_id)
        status = self._status(half)
        if status.op is not None:
            return AlreadyDecided(status=status)
        return Prepared(half=half, state=status.state, replayed=True)

    def _half(self, message: Message, row: int) -> HalfMessage:
        nonce = Nonce(secrets.randbits(NONCE_BITS))
        half_id = half_id_of(self._xid, row, shard_of(message.topic, message.key, nonce))
        return HalfMessage(
            half_id=half_id,
            nonce=nonce,
            message=message,
            prepared_at=self.clock.now(),
            content_digest=digest_of(half_id, nonce, message),
        )

    def _end_one(self, end: End) -> EndOutcome:
        half = self.halves.get(end.half_id)
        if half is None or half.nonce != end.nonce:
            return NoSuchMessage()
        if end.groups is not None and half.message.producer_group_id not in end.groups:
            return NoSuchMessage()
        if end.transaction_id not in (None, half.message.transaction_id):
            return NoSuchMessage()
        before = self._status(half)
        if before.op is not None or end.decision is Resolution.UNKNOWN:
            conflict = contradicts(before.state, end.decision)
            return Ended(status=before, already_ended=before.op is not None, conflict=conflict)
        self._decide(end)
        return Ended(status=self._status(half), already_ended=False)

    def _decide(self, end: End) -> None:
        self.ops[end.half_id] = OpMessage(
            decision=end.decision,
            decided_by=end.decided_by,
            decided_at=self.clock.now(),
            reason=end.reason,
        )
        if end.decision is Resolution.COMMIT:
            self.commit_log.append(end.half_id)

    def _status(self, half: HalfMessage) -> MessageStatus:
        op = self.ops.get(half.half_id)
        decision = None if op is None else op.decision
        return MessageStatus(
            half_id=half.half_id,
            nonce=half.nonce,
            producer_group_id=half.message.producer_group_id,
            state=derive(decision=decision, parked=False, published=False),
            transaction_id=half.message.transaction_id,
            op=op,
        )
