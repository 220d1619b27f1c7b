"""The SSRF guard of one call: the judged address is the address of the connection.

Only the allowed addresses of a name are connected to. Each socket is judged again when it is
created. This covers IP literals and a name that resolves differently a moment later.
"""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import Future
from threading import Thread
from typing import Any

from aiohttp import TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult

from outbox.checks.ssrf_guard import CheckUrl, Rule, SsrfPolicy, judge
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
        )

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the allowed addresses of a host. Raises OSError, or CheckUrlForbidden."""
        infos = await _look_up(host, port)
        allowed = [info for info in infos if self._rule(info) is None]
        if not allowed:
            self._refuse(infos[0])
        return [
            ResolveResult(
                hostname=host,
                host=address[0],
                port=port,
                family=family,
                proto=protocol,
                flags=socket.AI_NUMERICHOST,
            )
            for family, _, protocol, _, address in allowed
        ]

    async def judge_all(self) -> None:
        """Judge every address of the name: a proxy may connect to any of them."""
        for info in await _look_up(self._url.host, self._url.port):
            self._refuse(info)

    async def close(self) -> None:
        """Do nothing: a running look-up ends on its own thread."""

    def _make_socket(self, info: Any) -> socket.socket:
        family, kind, protocol, *_ = info
        self._refuse(info)
        return socket.socket(family=family, type=kind, proto=protocol)

    def _refuse(self, info: Any) -> None:
        rule = self._rule(info)
        if rule is not None:
            raise CheckUrlForbidden(rule)

    def _rule(self, info: Any) -> Rule | None:
        *_, address = info
        return judge(self._url, address[0], self._policy)


async def _look_up(host: str, port: int) -> Any:
    """Look a name up on a thread of its own: a slow name server delays no other call.

    A thread cannot be stopped: when its call has given up, it runs on until the system gives up.
    It is a daemon, so it does not delay the end of the process. Raises OSError.
    """
    found: Future[Any] = Future()

    def work() -> None:
        if not found.set_running_or_notify_cancel():  # the call has given up already
            return
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            found.set_exception(OSError(str(error)))
        else:
            found.set_result(infos)

    Thread(target=work, daemon=True).start()
    return await asyncio.wrap_future(found)
