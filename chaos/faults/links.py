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

    from chaos.faults.run_context import ChaosContext
    from chaos.profiles.schedule import Fault
    from chaos.proxies.proxy_client import RemoteLink

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
"""Faults that last for the fault's seconds."""
TURN_SECONDS: Final = 0.1
RESETS: Final = frozenset({"link_reset", "link_refuse"})
"""Faults that reset the present connections when they begin."""


class Network:
    """Performs the network faults of links; one fault at a time on each link."""

    kinds = frozenset({*NETWORK, "link_reset"})

    def __init__(self) -> None:
        self._busy: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Break the network of a link, wait, and heal it."""
        link = proxied_link(context, fault)
        with self._alone(context, link) as alone:
            if not alone:
                return {"link": link.name, "skipped": "the run ended before the link was free"}
            return self._perform(context, fault, link)

    def heal(self, context: ChaosContext) -> None:
        """Heal every link."""
        if context.proxies is not None:
            context.proxies.heal()

    def _perform(self, context: ChaosContext, fault: Fault, link: RemoteLink) -> Facts:
        broken, before = 0, link.traffic()
        if fault.kind in NETWORK:
            link.faults(NETWORK[fault.kind](fault))
        if fault.kind in RESETS:
            broken = link.reset()
        if fault.kind in NETWORK:
            context.stop.wait(fault.seconds)
            link.clear_faults()
        met = bool(broken) if fault.kind in RESETS else link.traffic() > before
        return {"link": link.name, "seconds": fault.seconds, "broken": broken, "met": met}

    @contextmanager
    def _alone(self, context: ChaosContext, link: RemoteLink) -> Iterator[bool]:
        """Wait until the link is free; yield whether it was before the end of the run."""
        lock = self._busy[link.name]
        while not (alone := lock.acquire(timeout=TURN_SECONDS)) and not context.stop.is_set():
            pass
        try:
            yield alone
        finally:
            if alone:
                lock.release()


def proxied_link(context: ChaosContext, fault: Fault) -> RemoteLink:
    """Return the link of a fault; the seed chooses among the links of several brokers.

    Raises RuntimeError if the run has no proxies, LookupError if there is no such link.
    """
    if context.proxies is None:
        raise RuntimeError(f"{fault.kind} needs a profile with proxies")
    links = context.proxies.links(fault.target)
    if not links:
        raise LookupError(f"no link {fault.target}")
    return context.random(f"{fault.kind}/{fault.at}").choice(links)
