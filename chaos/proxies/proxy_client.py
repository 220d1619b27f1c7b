"""Client of the proxies' process."""

from __future__ import annotations

import json
import socket
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from chaos.proxies.link_faults import Accept, Direction, LinkFaults
from chaos.proxies.rules import Rule
from devservers.child import Child, Command
from outbox.settings.environment import process_environment

ANSWER_SECONDS: Final = 60.0


class ProxiesFailed(RuntimeError):
    """The proxies' process refused an order or has ended."""


class RemoteLink:
    """Controls one link of the proxies' process."""

    def __init__(self, proxies: ProxyClient, name: str, port: int, server_port: int) -> None:
        """Refer to a link that listens on a port of this machine."""
        self._proxies = proxies
        self.name = name
        self.port = port
        self.server_port = server_port
        """The port of the server behind the link."""

    def faults(self, faults: LinkFaults) -> None:
        """Set the network faults; they replace the earlier ones."""
        self._ask("faults", faults=asdict(faults))

    def slow(self, latency_seconds: float, jitter_seconds: float = 0.0) -> None:
        """Delay both directions."""
        self.faults(LinkFaults(latency_seconds=latency_seconds, jitter_seconds=jitter_seconds))

    def drip(self, bytes_per_second: float) -> None:
        """Limit the rate in both directions."""
        self.faults(LinkFaults(bytes_per_second=bytes_per_second))

    def cut(self, *directions: Direction) -> None:
        """Deliver nothing in these directions, without closing connections."""
        self.faults(LinkFaults(cut=directions))

    def refuse(self) -> int:
        """Reset all connections and refuse new ones; return the number of resets."""
        self.faults(LinkFaults(accept=Accept.REFUSE))
        return self.reset()

    def reset(self) -> int:
        """Reset all present connections (RST); return their number."""
        return int(self._ask("reset")["broken"])

    def clear_faults(self) -> None:
        """Undo the network faults; rules stay armed."""
        self.faults(LinkFaults())

    def heal(self) -> None:
        """Undo every fault, disarm every rule, release every held frame."""
        self._ask("heal")

    def upstream(self, port: int) -> None:
        """Connect new connections to another port."""
        self._ask("upstream", port=port)
        self.server_port = port

    def arm(self, rule: Rule) -> int:
        """Arm a rule for frames; return its number."""
        return int(self._ask("rule", rule=asdict(rule))["rule"])

    def armed(self, rule: int) -> bool:
        """Return whether a rule still waits for frames."""
        return bool(self._ask("armed", rule=rule)["armed"])

    def disarm(self, rule: int) -> bool:
        """Forget a rule; False if it was used up."""
        return bool(self._ask("disarm", rule=rule)["was_armed"])

    def held(self, rule: int) -> int | None:
        """Return the number of the frame that a rule holds at present."""
        found = self._ask("held")["held"].get(str(rule))
        return None if found is None else int(found)

    def release(self, held: int) -> dict[str, Any]:
        """Deliver a held frame now; return what the server answered (``error`` of an EndTxn)."""
        return self._ask("release", held=held)

    def events(self, rule: int) -> list[dict[str, Any]]:
        """Return what was done to frames by a rule since the last call."""
        return list(self._ask("events", rule=rule)["events"])

    def counts(self) -> dict[str, int]:
        """Return the event counts since the start."""
        return dict(self._ask("counts")["counts"])

    def traffic(self) -> int:
        """Return a number that grows with each received byte and each new connection."""
        counts = self.counts()
        return counts.get("bytes", 0) + counts.get("connections", 0)

    def _ask(self, what: str, **more: object) -> dict[str, Any]:
        return self._proxies.ask({"do": what, "link": self.name, **more})


class ProxyClient:
    """The proxies' process and its links; may be used by several threads."""

    def __init__(self, log: Path, seed: int = 0) -> None:
        """Start the process; it ends with this one."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        descriptor = theirs.fileno()
        self._child = Child(
            Command(
                name="the proxies",
                arguments=[sys.executable, "-m", "chaos.proxies", str(descriptor), str(seed)],
                log=log,
                environment=process_environment(),
                pass_fds=[descriptor],
            )
        )
        theirs.close()
        ours.settimeout(ANSWER_SECONDS)
        self._orders = ours
        self._answers = ours.makefile("rb")
        self._lock = threading.Lock()
        self._links: dict[str, RemoteLink] = {}

    def __enter__(self) -> ProxyClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def open(self, name: str, kind: str, upstream: int) -> RemoteLink:
        """Open a link (tcp, kafka or postgres) to a port of this machine."""
        answer = self.ask({"do": "open", "link": name, "kind": kind, "upstream": upstream})
        link = self._links[name] = RemoteLink(self, name, int(answer["port"]), upstream)
        return link

    def link(self, name: str) -> RemoteLink:
        """Return an open link; raises KeyError."""
        return self._links[name]

    def links(self, name: str = "") -> list[RemoteLink]:
        """Return all links with this prefix, e.g. those of all brokers."""
        return [link for link in self._links.values() if link.name.startswith(name)]

    def heal(self) -> None:
        """Undo everything on every link."""
        for link in self.links():
            link.heal()

    def close(self) -> None:
        """End the process; every connection breaks."""
        self._orders.close()
        self._answers.close()
        self._child.kill()

    def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        """Give one order and return the answer. Raises ProxiesFailed."""
        with self._lock:
            try:
                self._orders.sendall(json.dumps(order).encode() + b"\n")
                line = self._answers.readline()
            except OSError as error:
                raise ProxiesFailed(f"the proxies do not answer: {error}") from error
        if not line:
            raise ProxiesFailed("the proxies have ended")
        answer: dict[str, Any] = json.loads(line)
        if "refused" in answer:
            raise ProxiesFailed(answer["refused"])
        return answer
