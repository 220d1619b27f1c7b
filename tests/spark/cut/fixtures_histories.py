"""Histories of one shard, drawn by Hypothesis, and what is open at a cut, found by counting.

Producers decide, a relay publishes in order and makes every mistake the audit knows, others write
into the topic, operators repair. A history ends with the cuts at which it is audited, each taken
log first and database last while the history goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from outbox.messages.manifest import HELD, PUBLISHED, START, Kind, Position
from outbox.messages.message import Resolution
from spark.findings.finding_class import Cause

MESSAGES: Final = 8
"""Messages of one history; the last one was never prepared."""
ABSENT: Final = MESSAGES - 1
FAR: Final = 99
"""A batch that no relay has written."""
FAULTS: Final = ("none", "none", "lost", "held", "twice", "altered", "headless", "skipped")
Command = tuple[str, int, int]
Open = frozenset[tuple[str, Cause]]
"""What is open: subject and cause."""


class Cut(NamedTuple):
    """What a run sees: what happened before these moments."""

    manifests: int
    records: int
    decided: int


class Written(NamedTuple):
    """One record; ``own`` records have the message's id, others only its half id."""

    at: int
    message: int
    batch_no: int | None
    right: bool = True
    own: bool = True
    redriven: bool = False


class Batch(NamedTuple):
    """One manifest."""

    at: int
    kind: Kind
    batch_no: int
    after: Position
    to: Position
    entries: tuple[tuple[int, bytes], ...]


class Held(NamedTuple):
    """The state of a record that Kafka refuses, or that an operator publishes again."""

    at: int
    message: int
    state: str


@dataclass(kw_only=True)
class History:
    """All events in both stores, by moment."""

    commands: Sequence[Command]
    cuts: Sequence[Cut]
    flushes: dict[int, list[int]] = field(default_factory=dict)
    unlogged: set[int] = field(default_factory=set)
    """The flushes whose row of the commit log is lost after the relay has read it."""
    rolled_back: dict[int, int] = field(default_factory=dict)
    batches: list[Batch] = field(default_factory=list)
    records: list[Written] = field(default_factory=list)
    holds: list[Held] = field(default_factory=list)

    def __post_init__(self) -> None:
        for at, (name, one, other) in enumerate(self.commands):
            getattr(self, f"_{name}")(at, one, other)

    @property
    def places(self) -> dict[int, Position]:
        """The place of each committed message in the commit log."""
        return {
            message: Position(at + 1, n)
            for at, flush in self.flushes.items()
            for n, message in enumerate(flush, 1)
        }

    def decision(self, message: int, moment: int) -> Resolution | None:
        """Return the decision in a snapshot of this moment."""
        if any(message in flush for at, flush in self.flushes.items() if at < moment):
            return Resolution.COMMIT
        rolled_back = self.rolled_back.get(message, moment) < moment
        return Resolution.ROLLBACK if rolled_back else None

    def last_batch(self, moment: int) -> int:
        """Return the last batch that was written before this moment."""
        return sum(each.at < moment for each in self.batches)

    def hold(self, message: int, moment: int) -> str | None:
        """Return how a message is held; one that is repaired was released as well."""
        states = [h.state for h in self.holds if h.message == message and h.at < moment]
        return states[-1] if states else None

    def _undecided(self) -> list[int]:
        decided = {*self.places, *self.rolled_back}
        return [each for each in range(ABSENT) if each not in decided]

    def _commit(self, at: int, one: int, other: int) -> None:
        undecided = self._undecided()
        if undecided:
            start = one % len(undecided)
            self.flushes[at] = undecided[start : start + 1 + other % 3]
            if other == len(FAULTS) - 1:
                self.unlogged.add(at)

    def _roll_back(self, at: int, one: int, other: int) -> None:
        undecided = self._undecided()
        if undecided:
            self.rolled_back[undecided[one % len(undecided)]] = at

    def _publish(self, at: int, one: int, other: int) -> None:
        """Publish the next messages in order, one of them with a fault."""
        after = self.batches[-1].to if self.batches else START
        waiting = sorted((place, m) for m, place in self.places.items() if place > after)
        some = waiting[: 1 + one % 3]
        faults = {
            m: FAULTS[other] if n == one % len(some) else "none" for n, (_, m) in enumerate(some)
        }
        entries = [
            (m, HELD if fault == "held" else PUBLISHED)
            for m, fault in faults.items()
            if fault != "skipped"
        ]
        batch_no = self._end(at, Kind.BATCH, entries, some[-1][0] if some else after)
        for message, fault in faults.items():
            copies = {"lost": 0, "held": 0, "skipped": 0, "twice": 2}.get(fault, 1)
            header = None if fault == "headless" else batch_no
            self.records += copies * [Written(at, message, header, right=fault != "altered")]
            if fault == "held":
                self.holds.append(Held(at, message, "open"))

    def _end(
        self, at: int, kind: Kind, entries: list[tuple[int, bytes]], to: Position | None = None
    ) -> int:
        last = self.batches[-1].to if self.batches else START
        batch_no = len(self.batches) + 1
        self.batches.append(Batch(at, kind, batch_no, last, to or last, tuple(entries)))
        return batch_no

    def _release(self, at: int, one: int, other: int) -> None:
        held = [m for m in range(MESSAGES) if self.hold(m, at) == "open"]
        if held:
            message = held[one % len(held)]
            self.holds.append(Held(at, message, ("released", "dropped")[other % 2]))
            if not other % 2:
                self._again(at, Kind.RELEASE, message)

    def _repair(self, at: int, one: int, other: int) -> None:
        """Publish a lost message again by an operator's order, once."""
        lost = [each for each in self._lost() if self.hold(each, at) is None]
        if lost:
            message = lost[one % len(lost)]
            self.holds.append(Held(at, message, "repaired"))
            self._again(at, Kind.REPAIR, message)

    def _again(self, at: int, kind: Kind, message: int) -> None:
        batch_no = self._end(at, kind, [(message, PUBLISHED)])
        self.records.append(Written(at, message, batch_no, redriven=kind is Kind.REPAIR))

    def _lost(self) -> list[int]:
        there = {each.message for each in self.records if each.own}
        to = self.batches[-1].to if self.batches else START
        return [m for m, place in self.places.items() if place <= to and m not in there]

    def _late(self, at: int, one: int, other: int) -> None:
        """Let the missing record of a message arrive in the log."""
        listed = [(m, b.batch_no) for b in self.batches for m, _ in b.entries]
        if listed:
            message, batch_no = listed[one % len(listed)]
            self.records.append(Written(at, message, batch_no))

    def _stray(self, at: int, one: int, other: int) -> None:
        """Let another writer write a record of any message, or of none."""
        batch_no = (None, 1, FAR, None)[other % 4]
        self.records.append(Written(at, one, batch_no, right=other < 5, own=other != 3))


FAULTY: Final = ("release", "repair", "late", "stray")
USUAL: Final = ("commit", "commit", "publish", "publish", "publish", "roll_back")
STEPS: Final = st.tuples(
    st.sampled_from((*USUAL, *FAULTY)), st.integers(0, 7), st.integers(0, len(FAULTS) - 1)
)
LAGS: Final = st.tuples(st.integers(0, 9), st.integers(0, 2), st.integers(0, 2))


@st.composite
def histories(draw: st.DrawFn, most_cuts: int, steps: st.SearchStrategy[Command]) -> History:
    """Draw what happens and when it is looked at; each run begins when the last one has its cut."""
    commands = draw(st.lists(steps, min_size=10, max_size=30))
    cuts, now = list[Cut](), 0
    for lags in draw(st.lists(LAGS, min_size=2, max_size=most_cuts)):
        moments = (min(now + sum(lags[: n + 1]), len(commands)) for n in range(3))
        cuts.append(Cut(*moments))
        now = cuts[-1].decided
    return History(commands=commands, cuts=cuts)


def touching() -> Iterator[History]:
    """Yield histories whose second run reads what concerns only messages that the first judged."""
    for fault, later in (
        ("none", ("late", 0, 0)),
        ("lost", ("late", 0, 0)),
        ("lost", ("repair", 0, 0)),
        ("held", ("release", 0, 0)),
        ("held", ("release", 0, 1)),
    ):
        commands = [("commit", 0, 0), ("publish", 0, FAULTS.index(fault)), later]
        yield History(commands=commands, cuts=[Cut(2, 2, 2), Cut(3, 3, 3)])


def any_histories(most_cuts: int) -> st.SearchStrategy[History]:
    """Return histories with every fault that the audit judges by message."""
    return histories(most_cuts, STEPS)


def drawn(count: int, strategy: st.SearchStrategy[History]) -> list[History]:
    """Return this number of histories, the same ones every time."""
    found: list[History] = []

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(history: History) -> None:
        found.append(history)

    collect()
    return found


def open_at(history: History, cut: Cut) -> Open:
    """Return what is open at a cut, by counting."""
    return frozenset(found for each in range(MESSAGES) for found in _open(history, cut, each))


def _open(history: History, cut: Cut, message: int) -> Iterator[tuple[str, Cause]]:
    batches = [each for each in history.batches if each.at < cut.manifests]
    last = batches[-1].batch_no if batches else 0
    seen = [
        (offset, r)
        for offset, r in enumerate(history.records)
        if r.at < cut.records and r.message == message
    ]
    own = [(offset, r) for offset, r in seen if r.own]
    yield from ((f"record:{offset}", Cause.ORPHAN_UNKNOWN) for offset, r in seen if not r.own)
    decision = history.decision(message, cut.decided)
    if decision is not Resolution.COMMIT:
        unexpected = Cause.ORPHAN_ROLLED_BACK if decision else Cause.ORPHAN_UNDECIDED
        unexpected = Cause.ORPHAN_UNKNOWN if message == ABSENT else unexpected
        yield from ((f"record:{offset}", unexpected) for offset, _ in own)
        return
    newest = history.last_batch(cut.decided)
    ahead = range(last + 1, newest + 1)
    counted = [r for _, r in own if r.batch_no not in ahead]
    repaired = history.hold(message, cut.decided) == "repaired"
    explained = 1 + sum(r.redriven for r in counted) if repaired else 1
    place = history.places[message]
    logged = place.xid - 1 not in history.unlogged
    if not own and logged and batches and place <= batches[-1].to:
        yield from _missing(history, cut, message, batches)
    if len(counted) > 1:
        duplicate = len(counted) <= explained
        yield (
            f"message:{message}",
            Cause.DUPLICATE_REDRIVEN if duplicate else Cause.DUPLICATE_REPEATED,
        )
    if counted and not any(r.right for r in counted):
        yield f"message:{message}", Cause.ALTERED_VALUE


def _missing(
    history: History, cut: Cut, message: int, batches: Sequence[Batch]
) -> Iterator[tuple[str, Cause]]:
    listed = {status for each in batches for m, status in each.entries if m == message}
    state = history.hold(message, cut.decided)
    if PUBLISHED in listed:
        yield f"message:{message}", Cause.LOST_PUBLISHED
    elif HELD not in listed or state is None:
        yield f"message:{message}", Cause.LOST_SKIPPED
    elif state in ("open", "dropped"):
        yield (
            f"message:{message}",
            Cause.UNPUBLISHED_HELD if state == "open" else Cause.UNPUBLISHED_GIVEN_UP,
        )
