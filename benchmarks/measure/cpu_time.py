"""CPU seconds of a process and its descendants: the figure that a busy machine changes least."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

TICKS: Final = os.sysconf("SC_CLK_TCK")
_PARENT, _TIMES = 1, slice(11, 15)
"""Field numbers in /proc/PID/stat after the program's name: the parent; user and system time of the
process and of its reaped children."""


@dataclass(slots=True)
class Cost:
    """The cost of a block: CPU seconds here and in each server, wall-clock seconds."""

    cpu: float = 0.0
    wall: float = 0.0
    servers: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Meter:
    """Reads the CPU time of this process tree, and separately that of the servers in it."""

    servers: Mapping[str, int]

    def own(self) -> float:
        """Return the CPU seconds so far of this process and its children, without the servers."""
        return cpu_seconds(os.getpid(), set(self.servers.values()))

    @contextmanager
    def measured(self) -> Iterator[Cost]:
        """Yield the cost of the block, which is set at its end."""
        cost = Cost()
        began, own, servers = time.perf_counter(), self.own(), self._of_servers()
        yield cost
        cost.wall = time.perf_counter() - began
        cost.cpu = self.own() - own
        cost.servers = {name: end - servers[name] for name, end in self._of_servers().items()}

    def _of_servers(self) -> dict[str, float]:
        return {name: cpu_seconds(pid) for name, pid in self.servers.items()}


def cpu_seconds(root: int, apart: Collection[int] = ()) -> float:
    """Return the CPU seconds of a process tree without the trees of ``apart``."""
    return sum(process_tree(root, apart).values())


def process_tree(root: int, apart: Collection[int] = ()) -> dict[int, float]:
    """Return the CPU seconds of each process of a tree without the trees of ``apart``.

    A parent comes before its children.
    """
    times: dict[int, float] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(entry)):
            pid = int(entry.name)
            children[int(fields[_PARENT])].append(pid)
            times[pid] = sum(map(int, fields[_TIMES])) / TICKS
    found: dict[int, float] = {}
    waiting = [root]
    while waiting:
        pid = waiting.pop(0)
        if pid not in apart and pid in times:
            found[pid] = times[pid]
            waiting += children[pid]
    return found


def _stat(process: Path) -> list[str]:
    """Return the fields after the name, which may hold any text; none without the process."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
