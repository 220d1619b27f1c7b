"""Connections judged by the SSRF guard: the judged address is the address of the connection.

Every address of a name is judged before any socket is opened, so a set of public and internal
addresses is refused as a whole. Each socket is judged again when it is created. This covers IP
literals and a name that resolves differently a moment later.
"""

from __future__ import annotations

import socket
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from aiohttp import TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult

from outbox.checks.ssrf_guard import CheckUrl, Rule, SsrfPolicy, judge
from outbox.http_checks.look_ups import LookUps
from outbox.http_checks.own_listeners import (
    OwnListeners,
    is_this_machine,
    own_listeners,
    ssrf_policy,
)
from outbox.settings.catalogue import Settings

RECEIVE_BYTES: Final = 8192
"""What the system keeps of an answer (twice this): it is parsed at once, and others wait then."""


@dataclass(frozen=True, slots=True)
class CheckTarget:
    """Where a call may go: its URL, the policy of this moment, and the group that chose the URL."""

    url: CheckUrl
    policy: SsrfPolicy
    group_id: int
    ours_is_here: bool
    """One of our listeners has this port on every address of this machine."""


TARGET: ContextVar[CheckTarget] = ContextVar("TARGET")
"""The target of this task's current call."""


class Blocked(Exception):
    """The SSRF guard refuses this address; no socket was opened."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule.value)
        self.rule = rule


class GuardedResolver(AbstractResolver):
    """Resolves the names of check URLs, and refuses a set that has a forbidden address."""

    def __init__(self, policy: SsrfPolicy, own: OwnListeners | None = None) -> None:
        self.policy = policy
        self._own = own or OwnListeners(())
        self._look_ups = LookUps()

    async def aim(self, url: CheckUrl, group_id: int) -> None:
        """Make a URL the target of this task's next call, judged by where our listeners are now.

        Raises OSError.
        """
        own, port = self._own, url.port
        if own.has_names(port):
            await self._look_ups.run(("own", port), port, partial(own.find, port))
        policy = replace(self.policy, own=(*self.policy.own, *own.at(port)))
        TARGET.set(CheckTarget(url, policy, group_id, own.is_here(port)))

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host. Raises OSError, or Blocked before any connection."""
        look_up = partial(socket.getaddrinfo, host, port, family=family, type=socket.SOCK_STREAM)
        group_id = TARGET.get().group_id
        infos = await self._look_ups.run(group_id, (host, port, family), look_up)
        for *_, address in infos:
            refuse(str(address[0]))
        return [_result(host, port, info) for info in infos]

    async def close(self) -> None:
        """Do nothing: a running look-up ends by itself."""


def guarded_connector(resolver: GuardedResolver) -> TCPConnector:
    """Return a connector whose sockets are all judged; the caller limits their number.

    A connection serves one call. In a second call, an unsolicited answer would count as the answer
    to another check (I14).
    """

    def make_socket(info: Any) -> socket.socket:
        refuse(str(info[4][0]))
        return small_socket(info)

    return TCPConnector(
        resolver=resolver,
        socket_factory=make_socket,
        use_dns_cache=False,
        happy_eyeballs_delay=None,
        limit=0,
        force_close=True,
        family=socket.AF_UNSPEC,
    )


def small_socket(info: Any) -> socket.socket:
    """Return a socket that takes an answer in small pieces, whatever the endpoint sends."""
    family, kind, protocol, *_ = info
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
    return made


def guarded_resolver(settings: Settings) -> GuardedResolver:
    """Return the guard of an installation. Raises ConfigurationError."""
    return GuardedResolver(ssrf_policy(settings), own_listeners(settings))


def refuse(address: str) -> None:
    """Raise Blocked if this task's call must not connect to an address."""
    target = TARGET.get()
    rule = judge(target.url, address, target.policy)
    if rule is None and target.ours_is_here and is_this_machine(address):
        rule = Rule.OWN_LISTENER
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
