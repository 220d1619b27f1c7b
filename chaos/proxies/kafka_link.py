"""The link to a broker: it relays whole requests and delivers stale copies later."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from chaos.proxies.connection import Passed
from chaos.proxies.kafka_frames import (
    END_TXN,
    LENGTH,
    FrameSplitter,
    Request,
    correlation_of,
    end_txn_error,
    read_request,
)
from chaos.proxies.link import LOOPBACK, Link
from chaos.proxies.rules import Action, Rule, RuleBook

ANSWER_SECONDS: Final = 30.0
REORDER_SECONDS: Final = 10.0
"""A held frame that no other frame overtakes continues after this time."""
RULES_KEPT: Final = 4096


@dataclass(eq=False, slots=True)
class Held:
    """A copy of a request on its way to the broker."""

    number: int
    rule: int
    request: Request
    frame: bytes
    frames_left: int | None
    since: float
    due: asyncio.Event = field(default_factory=asyncio.Event)
    delivered: asyncio.Event = field(default_factory=asyncio.Event)
    facts: dict[str, Any] = field(default_factory=dict)


class KafkaLink(Link):
    """Applies its rules to every request of every connection."""

    def __init__(self, name: str, upstream: int, seed: int) -> None:
        """Prepare a link to a broker's port."""
        super().__init__(name, upstream, seed)
        self.rules = RuleBook()
        self.held: dict[int, Held] = {}
        self.events: dict[int, list[dict[str, Any]]] = {}
        """events by rule, until they are read"""
        self._numbers = count(1)

    def inspector(self) -> RequestInspector:
        """Return the inspector of a new connection."""
        return RequestInspector(self)

    def heal(self) -> None:
        """Disarm the rules and release the held frames."""
        self.rules.clear()
        for held in self.held.values():
            held.due.set()

    def hold(self, rule_number: int, rule: Rule, request: Request, frame: bytes) -> Held:
        """Keep a copy until it is due, then deliver it."""
        held = Held(next(self._numbers), rule_number, request, frame, rule.frames, time.monotonic())
        self.held[held.number] = held
        self.note(rule_number, rule.action, request, held=held.number)
        patience = rule.seconds if rule.frames is None else REORDER_SECONDS
        task = asyncio.ensure_future(self._deliver(held, patience))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return held

    def count_overtaking(self) -> None:
        """Count a frame that overtakes held ones."""
        for held in self.held.values():
            if held.frames_left is not None:
                held.frames_left -= 1
                if held.frames_left <= 0:
                    held.due.set()

    def note(self, rule: int, what: str, request: Request, **facts: object) -> None:
        """Record an event of a rule."""
        self.counts[f"{what} {request.name}"] += 1
        while len(self.events) >= RULES_KEPT:
            self.events.pop(next(iter(self.events)))
        event = {
            "t": time.monotonic(),
            "what": str(what),
            "name": request.name,
            "owner": request.transactional_id,
            "commits": request.commits,
            **facts,
        }
        self.events.setdefault(rule, []).append(event)

    async def _deliver(self, held: Held, patience: float | None) -> None:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(held.due.wait(), patience)
        try:
            answer = await asyncio.wait_for(self._ask(held.frame), ANSWER_SECONDS)
            held.facts = {"error": _error(held.request, answer)}
        except (TimeoutError, OSError, EOFError) as error:
            held.facts = {"failed": type(error).__name__}
        finally:
            self.held.pop(held.number, None)
            held.delivered.set()
        late = round(time.monotonic() - held.since, 3)
        self.note(held.rule, "stale", held.request, held=held.number, late=late, **held.facts)

    async def _ask(self, frame: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(LOOPBACK, self.upstream)
        try:
            writer.write(frame)
            await writer.drain()
            size = await reader.readexactly(LENGTH.size)
            return size + await reader.readexactly(*LENGTH.unpack(size))
        finally:
            writer.close()


class RequestInspector:
    """The requests of one connection and their answers."""

    def __init__(self, link: KafkaLink) -> None:
        self._link = link
        self._requests, self._answers = FrameSplitter(), FrameSplitter()
        self._cut_at: dict[int, tuple[int, Request]] = {}

    async def up(self, data: bytes) -> Passed:
        """Apply the rules to each request that is complete."""
        passed = bytearray()
        for frame in self._requests.feed(data):
            part, cut = await self._look(frame)
            passed += part
            if cut:
                return Passed(bytes(passed), cut=True)
        return Passed(bytes(passed))

    async def down(self, data: bytes) -> Passed:
        """Pass whole answers, up to the one that must be lost."""
        passed = bytearray()
        for frame in self._answers.feed(data):
            struck = self._cut_at.pop(correlation_of(frame), None)
            if struck is not None:
                number, request = struck
                self._link.note(number, Action.DROP_ANSWER, request)
                return Passed(bytes(passed), cut=True)
            passed += frame
        return Passed(bytes(passed))

    async def _look(self, frame: bytes) -> Passed:
        request, link = read_request(frame), self._link
        link.counts[request.name] += 1
        struck = link.rules.decide(request.name, request.transactional_id, request.commits)
        if struck is None:
            link.count_overtaking()
            return Passed(frame)
        number, rule = struck
        match rule.action:
            case Action.HOLD:
                link.hold(number, rule, request, frame)
                return Passed(b"", cut=True)
            case Action.REPEAT:
                link.hold(number, rule, request, frame)
            case Action.DROP_ANSWER:
                self._cut_at[request.correlation] = number, request
            case Action.STALL:
                link.note(number, rule.action, request)
                await asyncio.sleep(rule.seconds or 0.0)
            case Action.CUT_MIDDLE:
                link.note(number, rule.action, request)
                return Passed(frame[: len(frame) // 2], cut=True)
        return Passed(frame)


def _error(request: Request, answer: bytes) -> int | None:
    return end_txn_error(request, answer) if request.api == END_TXN else None
