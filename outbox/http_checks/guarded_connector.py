"""Connections that the callback guard has judged: the address judged is the one connected to.

Every address a name resolves to is judged before any socket is opened, so a set that mixes public
and inner addresses is refused as a whole; then each socket is judged again as it is made, which
covers IP literals and a name that answers differently a moment later.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from contextvars import ContextVar
from threading import Thread
from typing import Any, Final

from aiohttp import TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult

from outbox.checks.ssrf_guard import CheckUrl, Rule, SsrfPolicy, judge

LOOK_UPS: Final = 64
"""Name look-ups under way at most: a slow name server of one group must not delay the others."""

TARGET: ContextVar[CheckUrl] = ContextVar("TARGET")
"""The URL of the call that this task is making."""


class Blocked(Exception):
    """The callback guard refuses this address; no socket was opened."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule.value)
        self.rule = rule


class GuardedResolver(AbstractResolver):
    """Resolves names on threads of its own and refuses a set that holds a forbidden address.

    The threads are daemons: a name server that hangs must not hold up the end of the process.
    """

    def __init__(self, policy: SsrfPolicy) -> None:
        self._policy = policy
        self._slots = asyncio.Semaphore(LOOK_UPS)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host; raises OSError, or Blocked before any is connected to."""
        await self._slots.acquire()
        found: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        look_up = Thread(target=self._look_up, args=(found, host, port, family), daemon=True)
        look_up.start()
        infos = await found
        for *_, address in infos:
            _refuse(self._policy, str(address[0]))
        return [_result(host, port, info) for info in infos]

    async def close(self) -> None:
        """Nothing to close: a look-up under way ends by itself."""

    def _look_up(self, found: asyncio.Future[list[Any]], host: str, port: int, family: int) -> None:
        """Resolve in this thread and hand the result to the loop, which may be gone by then."""
        infos, error = [], None
        try:
            infos = socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as raised:
            error = raised if isinstance(raised, OSError) else OSError("the name is not valid")
        with suppress(RuntimeError):
            found.get_loop().call_soon_threadsafe(self._deliver, found, infos, error)

    def _deliver(
        self, found: asyncio.Future[list[Any]], infos: list[Any], error: OSError | None
    ) -> None:
        self._slots.release()
        if found.done():
            return
        if error is None:
            found.set_result(infos)
        else:
            found.set_exception(error)


def guarded_connector(policy: SsrfPolicy, resolver: GuardedResolver) -> TCPConnector:
    """Return a connector whose every socket is judged; the caller bounds how many it opens.

    A connection carries one call: on the next one, an answer that nobody asked for would be taken
    for the answer to another check (I14).
    """

    def make_socket(info: Any) -> socket.socket:
        family, kind, protocol, _, address = info
        _refuse(policy, str(address[0]))
        return socket.socket(family=family, type=kind, proto=protocol)

    return TCPConnector(
        resolver=resolver,
        socket_factory=make_socket,
        use_dns_cache=False,
        happy_eyeballs_delay=None,
        limit=0,
        force_close=True,
        family=socket.AF_UNSPEC,
    )


def _refuse(policy: SsrfPolicy, address: str) -> None:
    rule = judge(TARGET.get(), address, policy)
    if rule is not None:
        raise Blocked(rule)


def _result(host: str, port: int, info: Any) -> ResolveResult:
    family, _, protocol, _, address = info
    return ResolveResult(
        hostname=host,
        host=str(address[0]),
        port=port,
        family=family,
        proto=protocol,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )
