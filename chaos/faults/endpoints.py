"""For a while, something hostile answers the checks in place of the honest endpoint (F14, 6.3)."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from chaos.faults.nemesis import Facts
from chaos.workload.hostile_endpoints import BEASTS, NAME, environment_of
from devservers.ports import free_ports

if TYPE_CHECKING:
    from chaos.proxies.proxy_client import RemoteLink
    from chaos.run_context import ChaosContext
    from chaos.schedule import Fault

ROLE: Final = "zoo"
PROGRAM: Final = "chaos.workload.hostile_endpoints:main"


class EndpointZoo:
    """Leads the check link to one of the beasts, and back; one at a time."""

    kinds = frozenset({"endpoint_zoo"})

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ports: Mapping[str, int] = {}
        self._honest: int | None = None

    def inject(self, world: ChaosContext, fault: Fault) -> Facts:
        """Let the fault's beast answer for its seconds."""
        beast = str(fault.arg("beast", "silent"))
        with self._lock:
            port = self._opened(world)[beast]
            self._lead(world, port)
            world.stop.wait(fault.seconds)
            self.heal(world)
        return {"beast": beast, "seconds": fault.seconds}

    def heal(self, world: ChaosContext) -> None:
        """Lead the link to the honest endpoint."""
        if self._honest is not None:
            self._lead(world, self._honest)

    def _opened(self, world: ChaosContext) -> Mapping[str, int]:
        """Return where each beast listens; the first time, start them."""
        if not self._ports:
            self._ports = dict(zip(BEASTS, free_ports(len(BEASTS)), strict=True))
            self._honest = _check_link(world).server_port
            world.processes.add(
                NAME, ROLE, PROGRAM, lambda life: environment_of(world.dir, self._ports, life)
            )
            world.processes.start(ROLE)
        return self._ports

    def _lead(self, world: ChaosContext, port: int) -> None:
        link = _check_link(world)
        link.upstream(port)
        link.reset()


def _check_link(world: ChaosContext) -> RemoteLink:
    if world.proxies is None:
        raise RuntimeError("endpoint_zoo needs a profile with proxies")
    return world.proxies.link("check")
