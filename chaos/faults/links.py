"""Faults of the network between the programs and PostgreSQL, Kafka or the check endpoint."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from chaos.faults.nemesis import Facts
from chaos.proxies.link_faults import Accept, Direction, LinkFaults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chaos.proxies.proxy_client import RemoteLink
    from chaos.run_context import ChaosContext
    from chaos.schedule import Fault

WAYS: Final = tuple(Direction)
NETWORK: Final[Mapping[str, Callable[[Fault], LinkFaults]]] = {
    "link_latency": lambda fault: LinkFaults(
        latency_seconds=float(fault.arg("latency", 0.05)),
        jitter_seconds=float(fault.arg("jitter", 0.05)),
    ),
    "link_drip": lambda fault: LinkFaults(bytes_per_second=float(fault.arg("rate", 2000.0))),
    "link_cut_up": lambda _: LinkFaults(cut=(Direction.UP,)),
    "link_cut_down": lambda _: LinkFaults(cut=(Direction.DOWN,)),
    "link_half_open": lambda _: LinkFaults(cut=WAYS, accept=Accept.SILENT),
    "link_refuse": lambda _: LinkFaults(accept=Accept.REFUSE),
}
"""What lasts for the fault's seconds."""
TURN_SECONDS: Final = 0.1
RESETS: Final = frozenset({"link_reset", "link_refuse"})
"""What breaks the connections there are (RST), when it begins."""


class Network:
    """Lets one link's network misbehave; one fault at a time on each link."""

    kinds = frozenset({*NETWORK, "link_reset"})

    def __init__(self) -> None:
        self._busy: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def inject(self, world: ChaosContext, fault: Fault) -> Facts:
        """Break the network, wait, heal it."""
        link = proxied_link(world, fault)
        with self._alone(world, link) as alone:
            if not alone:
                return {"link": link.name, "skipped": "the run ended before its turn"}
            return self._perform(world, fault, link)

    def heal(self, world: ChaosContext) -> None:
        """Heal every link."""
        if world.proxies is not None:
            world.proxies.heal()

    def _perform(self, world: ChaosContext, fault: Fault, link: RemoteLink) -> Facts:
        facts: Facts = {"link": link.name, "seconds": fault.seconds}
        if fault.kind in NETWORK:
            link.faults(NETWORK[fault.kind](fault))
        if fault.kind in RESETS:
            facts["broken"] = link.reset()
        if fault.kind in NETWORK:
            world.stop.wait(fault.seconds)
            link.calm()
        return facts

    @contextmanager
    def _alone(self, world: ChaosContext, link: RemoteLink) -> Iterator[bool]:
        """Wait for the link's turn; yield whether it came."""
        lock = self._busy[link.name]
        while not (alone := lock.acquire(timeout=TURN_SECONDS)) and not world.stop.is_set():
            pass
        try:
            yield alone
        finally:
            if alone:
                lock.release()


def proxied_link(world: ChaosContext, fault: Fault) -> RemoteLink:
    """Return a fault's link; of several brokers' links the seed chooses one.

    Raises RuntimeError if the run has no proxies, LookupError if there is no such link.
    """
    if world.proxies is None:
        raise RuntimeError(f"{fault.kind} needs a profile with proxies")
    links = world.proxies.links(fault.target)
    if not links:
        raise LookupError(f"no link {fault.target}")
    return world.random(f"{fault.kind}/{fault.at}").choice(links)
