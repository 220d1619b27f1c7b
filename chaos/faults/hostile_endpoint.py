"""Replaces the true check endpoint by a hostile one for a while (F14, 6.3)."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from chaos.faults.nemesis import Facts
from chaos.workload.hostile_endpoints import HOSTILE_ENDPOINTS, NAME, environment_of
from devservers.ports import free_ports

if TYPE_CHECKING:
    from chaos.faults.run_context import ChaosContext
    from chaos.profiles.schedule import Fault
    from chaos.proxies.proxy_client import RemoteLink

ROLE: Final = "zoo"
PROGRAM: Final = "chaos.workload.hostile_endpoints:main"


class HostileEndpoint:
    """Connects the check link to a hostile endpoint and back; one fault at a time."""

    kinds = frozenset({"endpoint_zoo"})

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ports: Mapping[str, int] = {}
        self._true_port: int | None = None

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Let a hostile endpoint answer for the fault's seconds.

        The argument and the fact are called ``beast``, as recorded runs have it.
        """
        name = str(fault.arg("beast", "silent"))
        with self._lock:
            port = self._opened(context)[name]
            self._connect(context, port)
            before = _check_link(context).traffic()
            context.stop.wait(fault.seconds)
            met = _check_link(context).traffic() > before
            self.heal(context)
        return {"beast": name, "seconds": fault.seconds, "met": met}

    def heal(self, context: ChaosContext) -> None:
        """Connect the link to the true endpoint."""
        if self._true_port is not None:
            self._connect(context, self._true_port)

    def _opened(self, context: ChaosContext) -> Mapping[str, int]:
        """Return the port of each hostile endpoint; the first call starts them."""
        if not self._ports:
            self._ports = dict(
                zip(HOSTILE_ENDPOINTS, free_ports(len(HOSTILE_ENDPOINTS)), strict=True)
            )
            self._true_port = _check_link(context).server_port
            context.processes.add(
                NAME, ROLE, PROGRAM, lambda life: environment_of(context.dir, self._ports, life)
            )
            context.processes.start(ROLE)
        return self._ports

    def _connect(self, context: ChaosContext, port: int) -> None:
        link = _check_link(context)
        link.upstream(port)
        link.reset()


def _check_link(context: ChaosContext) -> RemoteLink:
    if context.proxies is None:
        raise RuntimeError("endpoint_zoo needs a profile with proxies")
    return context.proxies.link("check")
