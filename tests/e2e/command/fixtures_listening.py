"""The addresses that a process listens on, read from the kernel."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

LISTEN = "0A"


def listening_addresses(pid: int) -> set[str]:
    """Return the IP addresses that a process listens on over TCP."""
    inodes = {link for link in _links(pid) if link.startswith("socket:")}
    found = set()
    for table, width in ((Path("/proc/net/tcp"), 8), (Path("/proc/net/tcp6"), 32)):
        for line in table.read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTEN and f"socket:[{fields[9]}]" in inodes:
                found.add(_address(fields[1][:width]))
    return found


def _links(pid: int) -> Iterator[str]:
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            yield str(entry.readlink())
        except FileNotFoundError:
            continue


def _address(text: str) -> str:
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    packed = b"".join(struct.pack("=I", word) for word in words)
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
