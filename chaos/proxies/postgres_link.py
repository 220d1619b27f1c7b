"""The link to PostgreSQL: it relays whole packets, so a COMMIT can be cut or lose its answer."""

from __future__ import annotations

import asyncio

from chaos.proxies.connection import Passed
from chaos.proxies.link import Link
from chaos.proxies.postgres_packets import Packet, PacketSplitter
from chaos.proxies.rules import Action, RuleBook


class PostgresLink(Link):
    """Applies its rules to every packet of every client."""

    def __init__(self, name: str, upstream: int, seed: int) -> None:
        """Prepare a link to the server's port."""
        super().__init__(name, upstream, seed)
        self.rules = RuleBook()

    def inspector(self) -> PacketInspector:
        """Return the inspector of a new connection."""
        return PacketInspector(self)

    def heal(self) -> None:
        """Disarm the rules."""
        self.rules.clear()


class PacketInspector:
    """The packets of one session."""

    def __init__(self, link: PostgresLink) -> None:
        self._link = link
        self._packets = PacketSplitter()
        self._answer_is_lost = False

    async def up(self, data: bytes) -> Passed:
        """Apply the rules to each packet that is complete."""
        passed = bytearray()
        for packet in self._packets.feed(data):
            part, cut = await self._look(packet)
            passed += part
            if cut:
                return Passed(bytes(passed), cut=True)
        return Passed(bytes(passed))

    async def down(self, data: bytes) -> Passed:
        """Pass answers, unless one must be lost."""
        return Passed(b"", cut=True) if self._answer_is_lost else Passed(data)

    async def _look(self, packet: Packet) -> Passed:
        struck = self._link.rules.decide(packet.name)
        if struck is None:
            return Passed(packet.data)
        _, rule = struck
        self._link.counts[f"{rule.action} {packet.name}"] += 1
        match rule.action:
            case Action.HOLD | Action.STALL:
                await asyncio.sleep(rule.seconds or 0.0)
            case Action.CUT_MIDDLE:
                return Passed(packet.data[: len(packet.data) // 2], cut=True)
            case Action.DROP_ANSWER:
                self._answer_is_lost = True
            case Action.REPEAT:
                """A packet of a session cannot be repeated."""
        return Passed(packet.data)
