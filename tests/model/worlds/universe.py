"""All worlds of a configuration, and the possible next steps of each.

It puts together what ``effects`` has worked out for single values, who pays for a fault and who
holds the handle; a transition costs a few dictionary look-ups.
"""

from __future__ import annotations

from collections.abc import Iterator

from outbox.messages.manifest import START
from outbox.relay.protocol.state import Cursor, Progress
from outbox.relay.protocol.step import step
from tests.model.configurations import Configuration
from tests.model.relays import Step
from tests.model.scene import RULES, Fault, Rules
from tests.model.stores.kafka import Broker
from tests.model.stores.postgres import IDENTITY, Database, promote
from tests.model.worlds.effects import Effects
from tests.model.worlds.world import ABSENT, NOBODY, UNCHANGED, Effect, Following, Transition, World

CLIENTS = -1
"""The actor of a step that is not a relay's."""
_FAULT_BITS = 4
_FAULT_MASK = (1 << _FAULT_BITS) - 1


class Universe:
    """The worlds of a configuration, under the protocol's own ``step`` or a mutant's."""

    def __init__(
        self, configuration: Configuration, step: Step = step, rules: Rules = RULES
    ) -> None:
        self.configuration = configuration
        self.effects = Effects(configuration, step, rules)
        self.databases, self.brokers = self.effects.databases, self.effects.brokers
        self._fresh = self.effects.relays.fresh
        self._void_with_session = rules.void_with_session
        self._fence_next_id = rules.fence_next_id

    def start(self) -> World:
        """Return the first world."""
        row = Progress(Cursor(START, 0, 0, 0, 1), IDENTITY, None)
        database = Database(row=None if self.configuration.first_start else row)
        fresh = self._fresh
        return World(
            database=self.databases.of(database),
            standby=ABSENT,
            broker=self.brokers.of(Broker()),
            owners=(NOBODY, NOBODY),
            first=fresh,
            second=fresh if self.configuration.relays == 2 else ABSENT,
            broken=0,
            left=sum(n << _FAULT_BITS * f for f, n in self.configuration.faults.items()),
            lost=0,
        )

    # -- Every next world ------------------------------------------------------------------------

    def following(self, world: World) -> Following:
        """Return every possible next step, and the next world when faults have stopped.

        Then open flushes commit first; after that one relay runs, the owner if there is one, for
        the lock works again. A quiet world follows itself.
        """
        steps = self._of_clients(world)
        calm = steps[0].world if self.databases.values[world.database].open else world
        steps += self._of_frames(world)
        steps += self._of_the_tail(world)
        for who in range(self.configuration.relays):
            acts = self._of_relay(world, who)
            if calm == world and acts and _last_owner(world) in (NOBODY, who):
                calm = acts[0].world
            steps += acts
            steps += self._of_death(world, who)
        return Following(steps, calm)

    def _of_clients(self, world: World) -> list[Transition]:
        steps: list[Transition] = []
        for text, database, cost in self.effects.of_clients(world.database):
            rest = _paid(world.left, cost)
            if rest is not None:
                changed = world._replace(database=database, left=rest)
                self._written(steps, world, CLIENTS, text, changed)
        return steps

    def _of_frames(self, world: World) -> list[Transition]:
        return [
            Transition(CLIENTS, text, world._replace(broker=broker))
            for text, broker in self.effects.of_frames(world.broker)
        ]

    def _of_the_tail(self, world: World) -> list[Transition]:
        """The standby takes over: what it did not receive is lost, and all sessions end."""
        left = _paid(world.left, Fault.FAILOVER)
        if world.standby == ABSENT or left is None:
            return []
        old, standby = (self.databases.values[n] for n in (world.database, world.standby))
        lost = old.committed - standby.committed
        changed = world._replace(
            database=self.databases.of(promote(standby, old)),
            standby=ABSENT,
            broken=sum(1 << who for who in self._in_session(world)),
            left=left,
            lost=world.lost | sum(1 << message for message in lost),
        )
        return [_placed(CLIENTS, "the standby takes over without the tail", changed)]

    def _in_session(self, world: World) -> Iterator[int]:
        """Yield the relays that would notice; a relay that is about to fence has no handle yet."""
        for who in range(self.configuration.relays):
            at_work = (world.first if who == 0 else world.second) != self._fresh
            if at_work and self._void_with_session:
                yield who

    def _of_relay(self, world: World, who: int) -> list[Transition]:
        steps: list[Transition] = []
        for effect in self.effects.of_relay(world, who):
            self._act(steps, world, who, effect)
        return steps

    def _act(self, steps: list[Transition], world: World, who: int, effect: Effect) -> None:
        database, standby, broker, owners, first, second, broken, left, lost = world
        _, to, _, closed, new_database, new_broker, cost, owns, number = effect
        takes = owns and any(each not in (NOBODY, who) for each in owners[number:])
        rest = _paid(left, Fault.TAKEOVER if takes else cost)
        if rest is None:
            return
        changed = World(
            database if new_database == UNCHANGED else new_database,
            standby,
            broker if new_broker == UNCHANGED else new_broker,
            self._owners_after(world, who, effect),
            first if who else to,
            to if who else second,
            broken & ~(1 << who) if closed else broken,
            rest,
            lost,
        )
        self._written(steps, world, who, effect.text, changed)

    def _of_death(self, world: World, who: int) -> list[Transition]:
        left = _paid(world.left, Fault.CRASH)
        if left is None:
            return []
        fresh, broken = self._fresh, world.broken & ~(1 << who)
        owners = _without(world.owners, who)
        gone = world._replace(left=left, broken=broken, owners=owners)
        gone = gone._replace(second=fresh) if who else gone._replace(first=fresh)
        return [_placed(who, "dies", gone)]

    def _owners_after(self, world: World, who: int, effect: Effect) -> tuple[int, int]:
        """Return who has each handle: a fence ends that of the next id, a timeout an open one's."""
        first, second = world.owners
        if effect.owns is None:
            return _without(world.owners, who) if effect.dropped else world.owners
        if effect.owns:
            if effect.number:
                return first, who
            return who, NOBODY if self._fence_next_id else second
        ids = self.brokers.values[world.broker].ids
        return NOBODY if ids[0].open else first, NOBODY if ids[1].open else second

    def _written(
        self, steps: list[Transition], world: World, who: int, text: str, changed: World
    ) -> None:
        """Add a step; if it wrote, the write reaches the standby or is the first that does not."""
        steps.append(_placed(who, text, changed))
        if changed.database == world.database or world.standby != ABSENT:
            return
        if _paid(world.left, Fault.FAILOVER) is not None:
            standby = self.effects.standby_of(world.database)
            if standby != self.effects.standby_of(changed.database):
                cut = changed._replace(standby=standby)
                steps.append(_placed(who, f"{text} (the standby misses it)", cut))


def _placed(who: int, text: str, world: World) -> Transition:
    """Sort the relays: two worlds that differ only in their names are one."""
    database, standby, broker, owners, first, second, broken, left, lost = world
    if second == ABSENT or (first, broken & 1) <= (second, broken >> 1):
        return Transition(who, text, world)
    one, two = (NOBODY if each == NOBODY else 1 - each for each in owners)
    broken = (broken & 1) << 1 | broken >> 1
    placed = World(database, standby, broker, (one, two), second, first, broken, left, lost)
    return Transition(who, text, placed, swapped=True)


def _last_owner(world: World) -> int:
    first, second = world.owners
    return first if second == NOBODY else second


def _without(owners: tuple[int, int], who: int) -> tuple[int, int]:
    first, second = owners
    return NOBODY if first == who else first, NOBODY if second == who else second


def _paid(left: int, cost: Fault | None) -> int | None:
    """Return the faults left after one, or None if it may not happen any more."""
    if cost is None:
        return left
    shift = _FAULT_BITS * cost
    return left - (1 << shift) if left >> shift & _FAULT_MASK else None
