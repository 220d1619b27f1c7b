"""Connections judged by the SSRF guard: the judged address is the address of the connection.

Every address of a name is judged before any socket is opened, so a set of public and internal
addresses is refused as a whole. Each socket is judged again when it is created. This covers IP
literals and a name that resolves differently a moment later.
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
"""The most name look-ups at once: a slow name server of one group must not delay others."""

TARGET: ContextVar[CheckUrl] = ContextVar("TARGET")
"""The URL of this task's current call."""


class Blocked(Exception):
    """The SSRF guard refuses this address; no socket was opened."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule.value)
        self.rule = rule


class GuardedResolver(AbstractResolver):
    """Resolves names on separate threads and refuses a set that has a forbidden address.

    The threads are daemons: a hanging name server must not delay the end of the process.
    """

    def __init__(self, policy: SsrfPolicy) -> None:
        self._policy = policy
        self._slots = asyncio.Semaphore(LOOK_UPS)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host. Raises OSError, or Blocked before any connection."""
        await self._slots.acquire()
        found: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        look_up = Thread(target=self._look_up, args=(found, host, port, family), daemon=True)
        look_up.start()
        infos = await found
        for *_, address in infos:
            _refuse(self._policy, str(address[0]))
        return [_result(host, port, info) for info in infos]

    async def close(self) -> None:
        """Do nothing: a running look-up ends by itself."""

    def _look_up(self, found: asyncio.Future[list[Any]], host: str, port: int, family: int) -> None:
        """Resolve in this thread and pass the result to the loop, which may be closed by then."""
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
    """Return a connector whose sockets are all judged; the caller limits their number.

    A connection serves one call. In a second call, an unsolicited answer would count as the answer
    to another check (I14).
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
