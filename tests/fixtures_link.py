"""A TCP link in front of a server on this machine: it can stop passing bytes, or hold one frame."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

LOOPBACK = "127.0.0.1"
CHUNK = 1 << 16
ASK_SECONDS = 30.0
END_TXN = 26
FLEXIBLE_SINCE = 3
"""From this version of EndTxn on the head of its answer has one more byte."""


class Link:
    """Relays bytes in both directions; ``port`` is where it listens."""

    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self._server = socket.create_server((LOOPBACK, 0))
        self.port = int(self._server.getsockname()[1])
        self._passing = threading.Event()
        self._passing.set()
        self._wanted = b""
        self._held: bytes | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    def stand_still(self) -> None:
        """Pass nothing from now on, as a half-open connection does; new ones are accepted."""
        self._passing.clear()

    def heal(self) -> None:
        """Pass again, also what came meanwhile, as TCP does; hold no further frame."""
        self._wanted, self._held = b"", None
        self._passing.set()

    def hold_end_txn(self, owner: str) -> None:
        """Keep the next EndTxn of a transactional id that ends so, and cut its connection."""
        self._held, self._wanted = None, owner.encode()

    def has_held(self) -> bool:
        """Return whether a frame is kept."""
        return self._held is not None

    def deliver(self) -> int:
        """Send the kept frame over a connection of its own; return the answer's error code."""
        frame = self._held
        assert frame is not None
        version = struct.unpack_from(">h", frame, 6)[0]
        with socket.create_connection((LOOPBACK, self._upstream), ASK_SECONDS) as connection:
            connection.sendall(frame)
            answer = _frame(connection)
        error_at = 4 + 4 + (version >= FLEXIBLE_SINCE) + 4
        return int(struct.unpack_from(">h", answer, error_at)[0])

    def close(self) -> None:
        """Stop listening."""
        self._server.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection((LOOPBACK, self._upstream)) as up:
            back = threading.Thread(target=self._pass_back, args=(up, client), daemon=True)
            back.start()
            while data := client.recv(CHUNK):
                self._passing.wait()
                if self._keep(data):
                    break
                up.sendall(data)
            with suppress(OSError):
                up.shutdown(socket.SHUT_RDWR)
            back.join()

    def _pass_back(self, up: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := up.recv(CHUNK):
                self._passing.wait()
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def _keep(self, data: bytes) -> bool:
        """Keep a wanted frame: no other bytes follow it, as its sender waits for the answer."""
        if not self._wanted or data[4:6] != struct.pack(">h", END_TXN) or self._wanted not in data:
            return False
        self._held, self._wanted = data, b""
        return True


@contextmanager
def link_to(port: int) -> Iterator[Link]:
    """Open a link for the block."""
    link = Link(port)
    try:
        yield link
    finally:
        link.heal()
        link.close()


def _frame(connection: socket.socket) -> bytes:
    """Return one frame with its length."""
    found = b""
    while len(found) < 4 or len(found) < 4 + struct.unpack_from(">i", found)[0]:
        data = connection.recv(CHUNK)
        assert data, "the broker has closed the connection"
        found += data
    return found
