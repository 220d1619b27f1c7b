"""The SSRF guard of one call: the judged address is the address of the connection.

Every address of a name is judged before any socket is opened, so a set of public and internal
addresses is refused as a whole. Each socket is judged again when it is created. This covers IP
literals and a name that resolves differently a moment later.
"""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import Future
from threading import Thread
from typing import Any

from aiohttp import TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult

from outbox.checks.ssrf_guard import CheckUrl, SsrfPolicy, judge
from outbox.errors import CheckUrlForbidden


class Guard(AbstractResolver):
    """Resolves the name of one check URL, and refuses what its call must not connect to."""

    def __init__(self, url: CheckUrl, policy: SsrfPolicy) -> None:
        self._url = url
        self._policy = policy

    def connector(self) -> TCPConnector:
        """Return a connector whose names and sockets are all judged."""
        return TCPConnector(
            resolver=self,
            socket_factory=self._make_socket,
            use_dns_cache=False,
            happy_eyeballs_delay=None,
            force_close=True,
            family=socket.AF_UNSPEC,
        )

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host. Raises OSError, or CheckUrlForbidden."""
        infos = await _look_up(host, port, family)
        for *_, address in infos:
            self._refuse(address)
        return [
            ResolveResult(
                hostname=host,
                host=address[0],
                port=port,
                family=family,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for family, _, protocol, _, address in infos
        ]

    async def close(self) -> None:
        """Do nothing: a running look-up ends on its own thread."""

    def _make_socket(self, info: Any) -> socket.socket:
        family, kind, protocol, _, address = info
        self._refuse(address)
        return socket.socket(family=family, type=kind, proto=protocol)

    def _refuse(self, address: tuple[Any, ...]) -> None:
        rule = judge(self._url, str(address[0]), self._policy)
        if rule is not None:
            raise CheckUrlForbidden(rule)


async def _look_up(host: str, port: int, family: int) -> Any:
    """Look a name up on a thread of its own: a slow name server delays no other call.

    A thread cannot be stopped: when its call has given up, it runs on until the system gives up.
    It is a daemon, so it does not delay the end of the process. Raises OSError.
    """
    found: Future[Any] = Future()

    def work() -> None:
        if not found.set_running_or_notify_cancel():  # the call has given up already
            return
        try:
            infos = socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            found.set_exception(OSError(str(error)))
        else:
            found.set_result(infos)

    Thread(target=work, daemon=True).start()
    return await asyncio.wrap_future(found)
