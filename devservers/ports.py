"""Free TCP ports on loopback."""

import socket

LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> tuple[int, ...]:
    """Return `count` different ports nobody listens on now."""
    with_open = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(count)]
    try:
        for each in with_open:
            each.bind((LOOPBACK, 0))
        return tuple(int(each.getsockname()[1]) for each in with_open)
    finally:
        for each in with_open:
            each.close()


def is_free(port: int) -> bool:
    """Tell whether a server could listen on this loopback port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
