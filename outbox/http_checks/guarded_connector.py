"""Connections judged by the SSRF guard: the judged address is the address of the connection.

Every address of a name is judged before any socket is opened, so a set of public and internal
addresses is refused as a whole. Each socket is judged again when it is created. This covers IP
literals and a name that resolves differently a moment later.
"""

from __future__ import annotations

import socket
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiohttp import TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult

from outbox.checks.ssrf_guard import CheckUrl, Rule, SsrfPolicy, judge, policy_of
from outbox.http_checks.look_ups import LookUps
from outbox.settings.catalogue import Settings


@dataclass(frozen=True, slots=True)
class CheckTarget:
    """Where a call may go: its URL, the operator's policy, and the group that chose the URL."""

    url: CheckUrl
    policy: SsrfPolicy
    group_id: int


TARGET: ContextVar[CheckTarget] = ContextVar("TARGET")
"""The target of this task's current call."""


class Blocked(Exception):
    """The SSRF guard refuses this address; no socket was opened."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule.value)
        self.rule = rule


class GuardedResolver(AbstractResolver):
    """Resolves the names of check URLs, and refuses a set that has a forbidden address."""

    def __init__(self, policy: SsrfPolicy) -> None:
        self.policy = policy
        self._look_ups = LookUps()

    def aim(self, url: CheckUrl, group_id: int) -> None:
        """Make a URL the target of this task's next call."""
        TARGET.set(CheckTarget(url, self.policy, group_id))

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host. Raises OSError, or Blocked before any connection."""
        look_up = partial(socket.getaddrinfo, host, port, family=family, type=socket.SOCK_STREAM)
        infos = await self._look_ups.run(TARGET.get().group_id, host, look_up)
        for *_, address in infos:
            refuse(str(address[0]))
        return [_result(host, port, info) for info in infos]

    async def close(self) -> None:
        """Do nothing: a running look-up ends on its own thread."""


def guarded_connector(resolver: GuardedResolver) -> TCPConnector:
    """Return a connector whose sockets are all judged; the caller limits their number.

    A connection serves one call. In a second call, an unsolicited answer would count as the answer
    to another check (I14).
    """

    def make_socket(info: Any) -> socket.socket:
        family, kind, protocol, _, address = info
        refuse(str(address[0]))
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


def guarded_resolver(settings: Settings) -> GuardedResolver:
    """Return the guard of an installation. Raises ConfigurationError."""
    return GuardedResolver(
        policy_of(
            settings.check_allow_cidrs,
            settings.check_allow_hosts,
            settings.check_allow_ports,
        )
    )


def refuse(address: str) -> None:
    """Raise Blocked if this task's call must not connect to an address."""
    target = TARGET.get()
    rule = judge(target.url, address, target.policy)
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
