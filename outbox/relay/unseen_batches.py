"""The batches that consumers were not known to see, and what became of their messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

from outbox.messages.manifest import PUBLISHED, Entry, Kind, Position
from outbox.messages.offset_run import OffsetRuns
from outbox.messages.record import heal_name
from outbox.relay.doubt import Doubt, InDoubt
from outbox.relay.protocol import answers
from outbox.relay.protocol.state import Found, Relay, require

EARLIER_MS: Final = 60_000
"""Longer than the longest transaction of the relay: how much older a batch's records may be."""


class UnseenBatches(NamedTuple):
    """The manifests of batches that consumers were not known to see, by offset."""

    committed: tuple[Found, ...]
    aborted: tuple[Found, ...]

    def judge(
        self,
        seen: frozenset[bytes],
        position: Position,
        unprovable: frozenset[bytes] = frozenset(),
    ) -> answers.BatchesSettled:
        """Return what is absent though published, and what is visible though aborted.

        What is missing and unprovable is named apart: publishing it again might double it.

        The stored row may count a batch whose manifest was aborted later. A held record may be
        marked by one, too; ordering one that still waits changes nothing.
        """
        counted = ids_of((*self.committed, *self._passed(position), *self._released()))
        unseen = [each for each in counted if each not in seen]
        known = self._repeatable(position) & seen
        return answers.BatchesSettled(
            (),
            tuple(each for each in unseen if each not in unprovable),
            proven=True,
            known=self._only(known),
            unprovable=tuple(each for each in unseen if each in unprovable),
        )

    def may_be_repeated(self, position: Position) -> bool:
        """Return whether a message that would be published next may be visible already."""
        return bool(self._repeatable(position))

    def _repeatable(self, position: Position) -> set[bytes]:
        """Return messages of aborted batches that are to be published again, or held still."""
        listed = {*ids_of((*self.committed, *self._passed(position)))}
        return {*ids_of(self.aborted)} - listed | {*ids_of(self._released())}

    def _released(self) -> list[Found]:
        return [each for each in self.aborted if require(each.manifest).kind is not Kind.BATCH]

    def _passed(self, position: Position) -> list[Found]:
        """Return the aborted batches that the stored row counts as published."""
        batches = ((each, require(each.manifest)) for each in self.aborted)
        return [f for f, m in batches if m.kind is Kind.BATCH and m.to <= position]

    def _only(self, message_ids: set[bytes]) -> Found | None:
        """Return a manifest that lists these messages alone."""
        if not message_ids:
            return None
        last = self.aborted[-1]
        entries = tuple(Entry(each, PUBLISHED) for each in sorted(message_ids))
        return last._replace(manifest=replace(require(last.manifest), entries=entries))


def ids_of(batches: Sequence[Found]) -> tuple[bytes, ...]:
    """Return the messages that manifests list as published."""
    return tuple(dict.fromkeys(p for each in batches for p in require(each.manifest).published))


def doubt_of(state: Relay, batches: UnseenBatches, in_doubt: InDoubt) -> Doubt:
    """Return what to look for: where each batch is, by the manifest after it or by its time."""
    committed = batches.committed
    newest = _runs_of_newest(state, committed)
    runs = [run for each in committed for run in require(each.manifest).before or ()]
    unplaced = [
        each
        for each, following in pairwise(committed)
        if require(following.manifest).before is None
    ]
    return Doubt(
        name=heal_name(state.installation, state.shard),
        next_topics=in_doubt.next_topics,
        next_ids=in_doubt.next_ids,
        listed=in_doubt.listed,
        runs=(*runs, *(newest or ())),
        last_since_ms=None if newest is not None else _since(committed[-1:]),
        since_ms=_since((*unplaced, *batches.aborted)),
        acknowledged=frozenset(ids_of(acknowledged(committed))),
    )


def acknowledged(committed: Sequence[Found]) -> list[Found]:
    """Return the batches that were committed after Kafka had acknowledged all of their records.

    An empty manifest of a new owner may have committed the one before it, which hung.
    """
    hung = {
        each.offset
        for each, following in pairwise(committed)
        if require(following.manifest).before is None and not require(following.manifest).entries
    }
    return [each for each in committed if each.offset not in hung]


def _runs_of_newest(state: Relay, committed: Sequence[Found]) -> OffsetRuns | None:
    """Return where the records of the last batch are, if this owner has published it."""
    if state.before is None or not committed:
        return None
    is_own = require(committed[-1].manifest).batch_no == state.at.batch_no
    return state.before if is_own else None


def _since(batches: Iterable[Found]) -> int | None:
    """Return a time (ms) before which none of the batches has a record."""
    times = (each.at_ms for each in batches if require(each.manifest).published)
    first = min(times, default=None)
    return None if first is None else first - EARLIER_MS
