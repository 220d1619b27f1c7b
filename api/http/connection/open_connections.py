"""The connections of one process: how many may be open, and which one has to go.

A newcomer is let in at the cost of the oldest connection that never authenticated. If there is
none, the tenant with most connections loses one: an idle one, or else one that waits for its
client. So neither strangers nor a tenant that hoards connections shut the door.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """What one process grants its connections."""

    connections: int = 4096
    """Open connections."""
    leaving: int = 256
    """Connections that were closed by us and still read what the client sends."""
    pipelined: int = 16
    """Requests of one connection that wait for the answer to an earlier one."""
    head_seconds: float = 10.0
    """From the first byte of a request, or from the connection, to the end of its headers."""
    body_seconds: float = 30.0
    idle_seconds: float = 75.0
    """From an answer to the next request."""
    unread_seconds: float = 15.0
    """A client that takes nothing of an answer for twice this time is cut off."""
    unread_bytes: int = 268_435_456
    """Most bytes of answers that clients do not read; beyond it one of them is cut off."""
    drain_seconds: float = 10.0
    """How long the rest of a request is read after it was answered."""
    drain_bytes: int = 16_777_216
    """Most bytes of that rest."""


class Connection(Protocol):
    """A connection as the table sees it."""

    @property
    def idle(self) -> bool:
        """True if no request is being received or answered."""

    @property
    def waits_for_client(self) -> bool:
        """True if the client has to send or to read before anything goes on."""

    def turn_away(self) -> None:
        """End, because a newer connection needs the place."""

    def abort(self) -> None:
        """End at once."""


class OpenConnections:
    """The table of one process."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._strangers: dict[Connection, None] = {}
        self._known: dict[Connection, Hashable] = {}
        self._leaving: dict[Connection, None] = {}
        self._unread: dict[Connection, int] = {}

    def admit(self, connection: Connection) -> None:
        """Add a new connection; above the limit one of them is turned away."""
        self._strangers[connection] = None
        if len(self._strangers) + len(self._known) > self.limits.connections:
            self._least_useful(connection).turn_away()

    def authenticated(self, connection: Connection, tenant: Hashable) -> None:
        """Note whose valid key a request of this connection had."""
        if connection in self._strangers:
            del self._strangers[connection]
            self._known[connection] = tenant
        elif connection in self._known:
            self._known[connection] = tenant

    def unread(self, connection: Connection, size: int) -> None:
        """Note what a client does not read; if it is too much, the oldest of who leaves most ends.

        All strangers are one tenant here.
        """
        self._unread[connection] = size
        while sum(self._unread.values()) > self.limits.unread_bytes:
            held: Counter[Hashable] = Counter()
            for each, bytes_left in self._unread.items():
                held[self._known.get(each)] += bytes_left
            [(most, _)] = held.most_common(1)
            oldest = next(each for each in self._unread if self._known.get(each) == most)
            del self._unread[oldest]
            oldest.abort()

    def has_read(self, connection: Connection) -> None:
        """Note that a client reads again."""
        self._unread.pop(connection, None)

    def leave(self, connection: Connection) -> None:
        """Count this connection no more; it may still read for a moment."""
        self._remove(connection)
        self._leaving[connection] = None
        if len(self._leaving) > self.limits.leaving:
            next(iter(self._leaving)).abort()

    def lost(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        self._remove(connection)
        self._leaving.pop(connection, None)
        self.has_read(connection)

    def _remove(self, connection: Connection) -> None:
        self._strangers.pop(connection, None)
        self._known.pop(connection, None)

    def _least_useful(self, newcomer: Connection) -> Connection:
        oldest = next(iter(self._strangers))
        if oldest is not newcomer:
            return oldest
        return self._least_useful_of_largest_tenant() or newcomer

    def _least_useful_of_largest_tenant(self) -> Connection | None:
        for tenant, _ in Counter(self._known.values()).most_common():
            own = [each for each, owner in self._known.items() if owner == tenant]
            idle = (each for each in own if each.idle)
            waiting = (each for each in own if each.waits_for_client)
            found = next(idle, None) or next(waiting, None)
            if found is not None:
                return found
        return None
