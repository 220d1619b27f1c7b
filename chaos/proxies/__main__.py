"""The proxies' process: ``python -m chaos.proxies <file descriptor of its orders> <seed>``.

It ends with whoever gives the orders.
"""

from __future__ import annotations

import asyncio
import socket
import sys

from chaos.proxies.control import Control


def main() -> None:
    """Follow orders until their source is closed."""
    descriptor, seed = (int(argument) for argument in sys.argv[1:])
    asyncio.run(_serve(descriptor, seed))


async def _serve(descriptor: int, seed: int) -> None:
    orders = socket.socket(fileno=descriptor)
    reader, writer = await asyncio.open_unix_connection(sock=orders)
    await Control(seed).serve(reader, writer)


if __name__ == "__main__":
    main()
