"""A server of raw bytes, for answers that no HTTP server would give."""

from __future__ import annotations

import socket
import socketserver
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread


@contextmanager
def tcp_server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Call ``answer`` for each connection, in a thread of its own; yield the server's URL.

    The call of ``answer`` ends when the other side has closed its connection.
    """

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                answer(self.request)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_address[1]}"
        finally:
            listening.shutdown()
            thread.join()
