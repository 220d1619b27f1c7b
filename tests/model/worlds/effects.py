"""The possible effects on a value, computed once: a search reaches the same values many times.

An action of a relay depends on the relay and on one of the two stores.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.model.actions.clients import client_moves
from tests.model.actions.late_frames import arrivals
from tests.model.actions.relay_actions import asks_database, at_broker, at_database, at_lost_session
from tests.model.configurations import Configuration
from tests.model.relays import Relays, Step
from tests.model.scene import AtBroker, AtDatabase, Fault, Outcome, Rules
from tests.model.stores.kafka import Broker
from tests.model.stores.postgres import Database, standby_of
from tests.model.worlds.world import UNCHANGED, Effect, Numbered, World


class Effects:
    """Numbers the values of a configuration's worlds and stores the possible effects on each."""

    def __init__(self, configuration: Configuration, step: Step, rules: Rules) -> None:
        self.relays = Relays(step)
        self.databases: Numbered[Database] = Numbered()
        self.brokers: Numbered[Broker] = Numbered()
        self.reached: set[str] = set()
        self._configuration = configuration
        self._rules = rules
        self._asks_database: dict[int, bool] = {}
        self._at_database: dict[tuple[int, int, bool], list[Effect]] = {}
        self._at_broker: dict[tuple[int, int, bool], list[Effect]] = {}
        self._clients: dict[int, list[tuple[str, int, Fault | None]]] = {}
        self._frames: dict[int, list[tuple[str, int]]] = {}
        self._standbys: dict[int, int] = {}

    def of_relay(self, world: World, who: int) -> list[Effect]:
        """Return the effects of the next action of a relay; none while it has to wait."""
        local = world.second if who else world.first
        asks_database = self._asks_database.get(local)
        if asks_database is None:
            asks_database = self._learn(local)
        if asks_database:
            asked = (local, world.database, bool(world.broken >> who & 1))
            effects = self._at_database.get(asked)
            if effects is None:
                effects = self._at_database[asked] = self._with_database(*asked)
        else:
            number = self.relays.known[local].state.number
            key = (local, world.broker, world.owners[number] == who)
            effects = self._at_broker.get(key)
            if effects is None:
                effects = self._at_broker[key] = self._with_broker(*key)
        return effects

    def of_clients(self, database: int) -> list[tuple[str, int, Fault | None]]:
        """Return the possible moves of flushes; the first, if one is open, commits it."""
        moves = self._clients.get(database)
        if moves is None:
            value = self.databases.values[database]
            moves = self._clients[database] = [
                (text, self.databases.of(after), cost)
                for text, after, cost in client_moves(value, self._configuration)
            ]
        return moves

    def of_frames(self, broker: int) -> list[tuple[str, int]]:
        """Return the possible effects of late frames."""
        frames = self._frames.get(broker)
        if frames is None:
            frames = self._frames[broker] = []
            for text, after, reached in arrivals(self.brokers.values[broker]):
                self.reached.update(reached)
                frames.append((text, self.brokers.of(after)))
        return frames

    def standby_of(self, database: int) -> int:
        """Return a standby that has received this and nothing later."""
        standby = self._standbys.get(database)
        if standby is None:
            standby = self.databases.of(standby_of(self.databases.values[database]))
            self._standbys[database] = standby
        return standby

    def _learn(self, local: int) -> bool:
        asks = self._asks_database[local] = asks_database(self.relays.known[local])
        return asks

    def _with_database(self, local: int, database: int, broken: bool) -> list[Effect]:
        relay = self.relays.known[local]
        if broken:
            return self._noted(local, at_lost_session(relay))
        scene = AtDatabase(
            database=self.databases.values[database],
            rules=self._rules,
            batch_max=self._configuration.batch_max,
        )
        return self._noted(local, at_database(relay, scene))

    def _with_broker(self, local: int, broker: int, owner: bool) -> list[Effect]:
        relay = self.relays.known[local]
        scene = AtBroker(
            broker=self.brokers.values[broker],
            number=relay.state.number,
            owner=owner,
            rules=self._rules,
        )
        return self._noted(local, at_broker(relay, scene))

    def _noted(self, local: int, outcomes: Sequence[Outcome]) -> list[Effect]:
        """Number the results of outcomes; leave out faults that never happen here."""
        faults = self._configuration.faults
        return [
            self._effect(local, outcome)
            for outcome in outcomes
            if outcome.cost is None or faults.get(outcome.cost)
        ]

    def _effect(self, local: int, outcome: Outcome) -> Effect:
        self.reached.update(outcome.reached)
        to, dropped, closed = self.relays.after(local, outcome.answer)
        database = UNCHANGED if outcome.database is None else self.databases.of(outcome.database)
        broker = UNCHANGED if outcome.broker is None else self.brokers.of(outcome.broker)
        number = self.relays.known[local].state.number
        return Effect(
            outcome.text, to, dropped, closed, database, broker, outcome.cost, outcome.owns, number
        )
