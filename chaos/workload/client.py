"""A client process of a run with several producers: prepare, local transaction, end.

Work that a kill interrupts stays as it is: the check endpoint knows the truth.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Final, Self

from chaos.history import HistoryWriter
from chaos.workload.api_connection import ApiConnection
from chaos.workload.plan import Ending, Form, Planned, Unit, units
from chaos.workload.service_calls import EndRequest, Ids, ServiceCalls
from chaos.workload.truth import Truth
from devservers.child import CLEAN_ENVIRONMENT
from outbox.settings.environment import process_environment

VARIABLE: Final = "CHAOS_CLIENT"
PAUSE_SECONDS: Final = 0.1
"""The pause after a call without an answer."""
OPPOSITE: Final = {"COMMIT": "ROLLBACK", "ROLLBACK": "COMMIT"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """All settings of a client process."""

    run: str
    name: str
    life: int
    seed: int
    ports: list[int]
    api_key: str
    producers: int
    messages_per_second: float

    def text(self) -> str:
        """Return the settings as an environment variable."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Read the settings from the environment."""
        return cls(**json.loads(environment[VARIABLE]))


def main() -> None:
    """Work until killed or asked to stop."""
    asyncio.run(work(ClientSettings.read(process_environment())))


def environment_of(settings: ClientSettings) -> dict[str, str]:
    """Return the environment of a client's process."""
    return {**CLEAN_ENVIRONMENT, VARIABLE: settings.text()}


async def work(settings: ClientSettings) -> None:
    """Run the producers of one process."""
    run = Path(settings.run)
    history = HistoryWriter(run, settings.name, settings.life)
    truth = Truth(run / "truth" / f"{settings.name}.sqlite")
    async with asyncio.TaskGroup() as producers:
        for number in range(settings.producers):
            producer = Producer(settings, number, history, truth)
            producers.create_task(producer.run())


class Producer:
    """One logical client: one call at a time, with its share of the load."""

    def __init__(
        self, settings: ClientSettings, number: int, history: HistoryWriter, truth: Truth
    ) -> None:
        name = f"{settings.name}-{settings.life}-{number}"
        self._work: Iterator[Unit] = units(settings.seed, name)
        ports = settings.ports[number % 2 :] + settings.ports[: number % 2]
        self._calls = ServiceCalls(
            [ApiConnection(port, settings.api_key) for port in ports], history
        )
        self._truth = truth
        self._seconds_each = settings.producers / settings.messages_per_second

    async def run(self) -> None:
        """Work on one unit after another at the target rate."""
        due = monotonic()
        for unit in self._work:
            await self._do(unit)
            due = max(due + len(unit.items) * self._seconds_each, monotonic() - 1.0)
            await asyncio.sleep(max(0.0, due - monotonic()))

    async def _do(self, unit: Unit) -> None:
        if unit.form is Form.CHAIN:
            for item in unit.items:
                await self._transact(unit.group, [item], batch=False)
        else:
            await self._transact(unit.group, list(unit.items), batch=unit.form is Form.BATCH)

    async def _transact(self, group: str, items: list[Planned], *, batch: bool) -> None:
        """Prepare, decide and end one unit."""
        ids = await self._prepared(group, items, batch=batch)
        if not ids:
            return
        wanted = {item.tx: item.decision for item in items if item.tx in ids}
        decided = self._truth.decide(wanted)
        for ends in _rounds(items, ids, decided):
            await self._end(ends, batch=batch)
        again = [item for item in items if item.replayed]
        if again:
            await self._calls.prepare(group, again, batch=batch)

    async def _prepared(self, group: str, items: list[Planned], *, batch: bool) -> Ids | None:
        ids = await self._calls.prepare(group, items, batch=batch)
        if ids is None:
            await asyncio.sleep(PAUSE_SECONDS)
            ids = await self._calls.prepare(group, items, batch=batch)
        elif any(item.replayed for item in items):
            again = [item for item in items if item.replayed]
            await self._calls.prepare(group, again, batch=batch)
        return ids

    async def _end(self, ends: list[EndRequest], *, batch: bool) -> None:
        if ends and not await self._calls.end(ends, batch=batch):
            await asyncio.sleep(PAUSE_SECONDS)
            with suppress(Exception):
                await self._calls.end(ends, batch=batch)


def _rounds(
    items: list[Planned], ids: Ids, decided: Mapping[str, str]
) -> Iterator[list[EndRequest]]:
    """Yield the ends in sending order: the first ones, then those that follow them."""
    first, second = list[EndRequest](), list[EndRequest]()
    for item in items:
        if item.tx not in ids or item.ending is Ending.NEVER:
            continue
        end = EndRequest(ids[item.tx], decided[item.tx])
        match item.ending:
            case Ending.UNKNOWN:
                first.append(EndRequest(end.message_id, "UNKNOWN"))
            case Ending.TWICE:
                first.append(end)
                second.append(end)
            case Ending.CONTRADICTED:
                first.append(end)
                second.append(EndRequest(end.message_id, OPPOSITE[end.decision]))
            case Ending.ONCE:
                first.append(end)
    yield first
    yield second


if __name__ == "__main__":
    main()
