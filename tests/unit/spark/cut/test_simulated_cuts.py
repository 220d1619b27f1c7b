"""Cuts at any moment of a moving system, simulated: none shows a finding, and each rule is needed.

The model has what makes a cut hard: relays that publish in transactions, markers that reach each
partition by themselves, aborted attempts, and decisions that go on while the cut is taken.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import pytest

from outbox.messages.manifest import START, Position
from outbox.reconciliation.log import Offsets, Partition
from spark.compare.decision_table import Decision, Facts, Listed, classify
from spark.cut import cut_plan
from spark.findings.finding_class import Cause

pytestmark = pytest.mark.deep

SHARDS, CUTS, CUTS_OF_A_MUTANT = 2, 3_000, 500
PROGRESS = [Partition("progress", shard) for shard in range(SHARDS)]
DATA = [Partition("data", number) for number in range(2)]
Ends = dict[Partition, int]


@dataclass
class Batch:
    """One attempt of a relay to publish: in flight, then committed or aborted, then marked."""

    shard: int
    batch_no: int
    to: Position
    messages: list[int]
    aborts: bool
    unmarked: set[Partition]
    ending: bool = False


@dataclass
class World:
    """Two stores and two relays; every entry of a partition's log is (batch, message)."""

    random: Random
    decided: dict[int, Decision] = field(default_factory=dict)
    committed: list[list[int]] = field(default_factory=lambda: [[] for _ in range(SHARDS)])
    done: list[Position] = field(default_factory=lambda: [START] * SHARDS)
    batch_nos: list[int] = field(default_factory=lambda: [0] * SHARDS)
    open: list[Batch | None] = field(default_factory=lambda: [None] * SHARDS)
    logs: dict[Partition, list[tuple[Batch, int]]] = field(
        default_factory=lambda: {each: [] for each in (*PROGRESS, *DATA)}
    )

    def step(self) -> None:
        """Let one thing happen: a producer decides, or a relay goes one step on."""
        shard = self.random.randrange(SHARDS)
        if self.random.random() < 0.4:
            self._decide(shard)
        elif batch := self.open[shard]:
            self._go_on(batch)
        elif self.done[shard].n < len(self.committed[shard]):
            self._begin(shard)

    def _decide(self, shard: int) -> None:
        message = len(self.decided)
        rolled_back = self.random.random() < 0.2
        self.decided[message] = Decision.ROLLBACK if rolled_back else Decision.COMMIT
        if not rolled_back:
            self.committed[shard].append(message)

    def _begin(self, shard: int) -> None:
        start, committed = self.done[shard].n, self.committed[shard]
        end = self.random.randint(start + 1, len(committed))
        batch = Batch(
            shard=shard,
            batch_no=self.batch_nos[shard] + 1,
            to=Position(1, end),
            messages=committed[start:end],
            aborts=self.random.random() < 0.2,
            unmarked={PROGRESS[shard]},
        )
        self.open[shard] = batch

    def _go_on(self, batch: Batch) -> None:
        """Produce all records and then the manifest; end; mark one partition after the other."""
        produced = sum(each is batch for log in self.logs.values() for each, _ in log)
        if produced < len(batch.messages):
            message = batch.messages[produced]
            partition = DATA[message % len(DATA)]
            batch.unmarked.add(partition)
            self.logs[partition].append((batch, message))
        elif not batch.ending:
            self.logs[PROGRESS[batch.shard]].append((batch, -1))
            batch.ending = True
        else:
            batch.unmarked.remove(self.random.choice(sorted(batch.unmarked)))
            if not batch.unmarked:
                self._ended(batch)

    def _ended(self, batch: Batch) -> None:
        self.open[batch.shard] = None
        if not batch.aborts:
            self.done[batch.shard], self.batch_nos[batch.shard] = batch.to, batch.batch_no

    def highs(self, partitions: list[Partition]) -> Ends:
        """Return the high watermarks."""
        return {each: len(self.logs[each]) for each in partitions}

    def stable(self, partitions: list[Partition]) -> Ends:
        """Return the last stable offsets: where the first entry without its marker lies."""
        return {
            each: next(
                (at for at, (batch, _) in enumerate(self.logs[each]) if each in batch.unmarked),
                len(self.logs[each]),
            )
            for each in partitions
        }

    def read(self, ends: Ends, *, uncommitted: bool = False) -> list[tuple[Batch, int]]:
        """Return what lies below the ends, that of aborted attempts apart."""
        below = [entry for each, end in ends.items() for entry in self.logs[each][:end]]
        return [(batch, of) for batch, of in below if uncommitted or not batch.aborts]


def take(random: Random, mutant: str = "") -> Counter[Cause]:
    """Let a world run, take a cut of it while it goes on, and judge every message."""
    world = World(random)

    def go_on(most: int) -> None:
        for _ in range(random.randrange(most)):
            world.step()

    go_on(60)
    early_snapshot, early_highs = dict(world.decided), world.highs(DATA)
    go_on(12)
    manifest_ends = world.stable(PROGRESS)
    go_on(12)
    highs = early_highs if mutant == "records before manifests" else world.highs(DATA)
    stable = world.stable(DATA)
    while mutant != "no wait" and cut_plan.open_transactions(
        Offsets(offsets=highs), Offsets(offsets=stable)
    ):
        world.step()
        stable = world.stable(DATA)
    ends = highs if mutant == "records before manifests" else stable
    go_on(12)
    decided = early_snapshot if mutant == "snapshot before log" else dict(world.decided)
    manifests = [batch for batch, _ in world.read(manifest_ends)]
    return judge(decided, world, manifests, world.read(ends, uncommitted=mutant == "uncommitted"))


def judge(
    decided: dict[int, Decision],
    world: World,
    manifests: list[Batch],
    records: list[tuple[Batch, int]],
) -> Counter[Cause]:
    """Reduce every message to its facts, as the pipeline does, and classify it."""
    last = {batch.shard: batch for batch in manifests}
    rows = [
        {"shard": s, "batch_no": b.batch_no, "to_xid": b.to.xid, "to_n": b.to.n, "from_xid": 0}
        | {"from_n": 0, "manifests": b.batch_no, "restarted": False}
        for s, b in last.items()
    ]
    cuts = {each.shard: each for each in cut_plan.shard_cuts(rows)}
    listed = {message for batch in manifests for message in batch.messages}
    places = {m: (s, n) for s, ids in enumerate(world.committed) for n, m in enumerate(ids, 1)}
    copies: Counter[int] = Counter()
    ahead: Counter[int] = Counter()
    for batch, message in records:
        end = cuts[batch.shard].batch_no if batch.shard in cuts else 0
        (ahead if batch.batch_no > end else copies)[message] += 1
    found: Counter[Cause] = Counter()
    for message in {*decided, *copies, *ahead}:
        shard, n = places.get(message, (0, 0))
        decision = decided.get(message, Decision.NONE)
        judged = shard in cuts and Position(1, n) <= cuts[shard].position
        facts = Facts(
            decision=decision,
            judged=decision is Decision.COMMIT and judged,
            listed=Listed.PUBLISHED if message in listed else Listed.NOWHERE,
            copies=copies[message],
            ahead=ahead[message],
        )
        found.update(classify(facts))
    return found


def test_thousands_of_cuts_of_a_moving_system_show_no_finding() -> None:
    random = Random(5)
    for _ in range(CUTS):
        assert take(random) == {}


@pytest.mark.parametrize(
    ("mutant", "expected"),
    [
        ("snapshot before log", Cause.ORPHAN_UNDECIDED),
        ("records before manifests", Cause.LOST_PUBLISHED),
        ("no wait", Cause.LOST_PUBLISHED),
        ("uncommitted", Cause.DUPLICATE_REPEATED),
    ],
)
def test_a_cut_that_breaks_a_rule_shows_what_is_not_there(mutant: str, expected: Cause) -> None:
    random = Random(6)
    found = sum((take(random, mutant) for _ in range(CUTS_OF_A_MUTANT)), Counter[Cause]())
    assert found[expected]
