"""A response is one system call, though the server writes its parts separately."""

from __future__ import annotations

import asyncio

from api.http.http11 import JoinedWrites


class Recorded(asyncio.Transport):
    """A transport that records its calls."""

    def __init__(self) -> None:
        self.calls: list[bytes | str] = []

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.calls.append(data)

    def close(self) -> None:
        self.calls.append("close")

    def is_closing(self) -> bool:
        return False


async def test_what_is_written_in_one_turn_is_sent_at_once_and_before_the_close() -> None:
    recorded = Recorded()
    transport = JoinedWrites(recorded)
    transport.write(b"head, ")
    transport.write(b"body")
    await asyncio.sleep(0)
    transport.write(b"last")
    transport.close()
    assert recorded.calls == [b"head, body", b"last", "close"]
