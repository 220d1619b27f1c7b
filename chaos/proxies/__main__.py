"""The process of the proxies: ``python -m chaos.proxies <file descriptor of its orders> <seed>``.

It ends when the other end of the descriptor is closed.
"""

from __future__ import annotations

import asyncio
import socket
import sys

from chaos.proxies.link_control import LinkControl


def main() -> None:
    """Follow orders until their source is closed."""
    descriptor, seed = (int(argument) for argument in sys.argv[1:])
    asyncio.run(_serve(descriptor, seed))


async def _serve(descriptor: int, seed: int) -> None:
    orders = socket.socket(fileno=descriptor)
    reader, writer = await asyncio.open_unix_connection(sock=orders)
    await LinkControl(seed).serve(reader, writer)


if __name__ == "__main__":
    main()
