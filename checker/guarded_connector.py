"""Connections that the callback guard has judged: the address judged is the one connected to.

Every address a name resolves to is judged before any socket is opened, so a set that mixes public
and inner addresses is refused as a whole; then each socket is judged again as it is made, which
covers IP literals and a name that answers differently a moment later.
"""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, Final

from aiohttp import TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult

from outbox.callback_guard import CallbackPolicy, CheckUrl, Rule, judge

RESOLVER_THREADS: Final = 64
"""Name look-ups under way at most: a slow name server of one group must not delay the others."""

TARGET: ContextVar[CheckUrl] = ContextVar("TARGET")
"""The URL of the call that this task is making."""


class Blocked(Exception):
    """The callback guard refuses this address; no socket was opened."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule.value)
        self.rule = rule


class GuardedResolver(AbstractResolver):
    """Resolves names on threads of its own and refuses a set that holds a forbidden address."""

    def __init__(self, policy: CallbackPolicy) -> None:
        self._policy = policy
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, "resolve")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host; raises OSError, or Blocked before any is connected to."""
        loop = asyncio.get_running_loop()
        infos = await loop.run_in_executor(self._threads, _look_up, host, port, family)
        for *_, address in infos:
            _refuse(self._policy, str(address[0]))
        return [_result(host, port, info) for info in infos]

    async def close(self) -> None:
        """Let the threads go; a look-up under way is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def guarded_connector(policy: CallbackPolicy) -> TCPConnector:
    """Return a connector whose every socket is judged; the caller bounds how many it opens."""

    def make_socket(info: Any) -> socket.socket:
        family, kind, protocol, _, address = info
        _refuse(policy, str(address[0]))
        return socket.socket(family=family, type=kind, proto=protocol)

    return TCPConnector(
        resolver=GuardedResolver(policy),
        socket_factory=make_socket,
        use_dns_cache=False,
        happy_eyeballs_delay=None,
        limit=0,
        keepalive_timeout=30,
        family=socket.AF_UNSPEC,
    )


def _refuse(policy: CallbackPolicy, address: str) -> None:
    rule = judge(TARGET.get(), address, policy)
    if rule is not None:
        raise Blocked(rule)


def _look_up(host: str, port: int, family: int) -> list[Any]:
    return socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)


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
