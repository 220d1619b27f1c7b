"""Free TCP ports on loopback."""

import random
import socket

LOOPBACK = "127.0.0.1"
CHOSEN_FROM = range(10_000, 32_768)
"""Below the ports that Linux gives to outgoing connections: none of them takes one meanwhile."""


def free_ports(count: int) -> tuple[int, ...]:
    """Return `count` different ports that are free now."""
    chance, found = random.SystemRandom(), set[int]()
    while len(found) < count:
        port = chance.choice(CHOSEN_FROM)
        if is_free(port):
            found.add(port)
    return tuple(found)


def is_free(port: int) -> bool:
    """Return whether a server could listen on this loopback port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
