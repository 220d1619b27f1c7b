"""A bare HTTP server: parses requests with httptools and answers at once, without any work.

It is the floor of what HTTP costs a service in Python. It answers like the service, so the same
load client can be used. Prints its port.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, cast

import httptools
import uvloop

BODY: Final = b'{"message_id":"00000000000000000000000000000000","state":"COMMITTED"}'
HEAD: Final = b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(BODY)
PREPARED: Final = b"HTTP/1.1 201 Created\r\n" + HEAD + BODY
ENDED: Final = b"HTTP/1.1 200 OK\r\n" + HEAD + BODY


class Protocol(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to parse."""
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        """Remember the path."""
        self._answer = ENDED if url.endswith(b"/end") else PREPARED

    def on_message_complete(self) -> None:
        """Answer."""
        self._transport.write(self._answer)


@contextmanager
def bare_server() -> Iterator[tuple[str, int]]:
    """Run the server in a process of its own for the block; yield its address and its pid."""
    command = [sys.executable, "-m", "benchmarks.raw.http_protocol"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}", process.pid
        finally:
            process.kill()


async def main() -> None:
    """Serve until killed."""
    server = await asyncio.get_running_loop().create_server(Protocol, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
