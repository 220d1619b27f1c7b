"""Follows the orders to the proxies' process: one JSON object per line, one answer per line."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from chaos.proxies.kafka_link import KafkaLink
from chaos.proxies.link import Link
from chaos.proxies.link_faults import NONE, Accept, Direction, LinkFaults
from chaos.proxies.postgres_link import PostgresLink
from chaos.proxies.rules import Action, Rule

KINDS: Final[dict[str, type[Link]]] = {"tcp": Link, "kafka": KafkaLink, "postgres": PostgresLink}
Answer = dict[str, Any]


class InvalidOrder(ValueError):
    """An order that cannot be followed."""


class LinkControl:
    """All links and their orders."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._links: dict[str, Link] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Follow orders until the other end is closed."""
        while line := await reader.readline():
            try:
                answer = await self.follow(json.loads(line))
            except (InvalidOrder, KeyError, ValueError, TypeError, OSError) as error:
                answer = {"refused": f"{type(error).__name__}: {error}"}
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        for link in self._links.values():
            await link.close()

    async def follow(self, order: dict[str, Any]) -> Answer:
        """Follow one order."""
        if order["do"] == "open":
            return await self._open(order)
        link = self._links[order["link"]]
        match order["do"]:
            case "faults":
                await link.set(_faults(order["faults"]))
            case "upstream":
                link.upstream = int(order["port"])
            case "reset":
                return {"broken": link.reset()}
            case "heal":
                link.heal()
                await link.set(NONE)
            case "counts":
                return {"counts": dict(link.counts)}
            case _:
                return await self._about_frames(link, order)
        return {}

    async def _about_frames(self, link: Link, order: dict[str, Any]) -> Answer:
        if not isinstance(link, KafkaLink | PostgresLink):
            raise InvalidOrder(f"{link.name} has no frames")
        match order["do"]:
            case "rule":
                return {"rule": link.rules.add(_rule(order["rule"]))}
            case "armed":
                return {"armed": link.rules.is_armed(int(order["rule"]))}
            case "disarm":
                return {"was_armed": link.rules.remove(int(order["rule"]))}
        if not isinstance(link, KafkaLink):
            raise InvalidOrder(f"{link.name} holds no frames")
        return await _about_copies(link, order)

    async def _open(self, order: dict[str, Any]) -> Answer:
        link = KINDS[order["kind"]](order["link"], int(order["upstream"]), self._seed)
        await link.open()
        self._links[link.name] = link
        return {"port": link.port}


async def _about_copies(link: KafkaLink, order: dict[str, Any]) -> Answer:
    match order["do"]:
        case "events":
            return {"events": link.events.pop(int(order["rule"]), [])}
        case "held":
            return {"held": {held.rule: number for number, held in link.held.items()}}
        case "release":
            held = link.held[int(order["held"])]
            held.due.set()
            await held.delivered.wait()
            return held.facts
    raise InvalidOrder(f"no such order: {order['do']}")


def _faults(order: dict[str, Any]) -> LinkFaults:
    return LinkFaults(
        **{
            **order,
            "cut": tuple(Direction(way) for way in order["cut"]),
            "accept": Accept(order["accept"]),
        }
    )


def _rule(order: dict[str, Any]) -> Rule:
    return Rule(**{**order, "action": Action(order["action"])})
