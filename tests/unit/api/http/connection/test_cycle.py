"""A whole answer is one write, and no header can end its line."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from uvicorn.server import ServerState

from api.__main__ import server_config
from api.http.connection.open_connections import ConnectionLimits
from api.http.exchange import WHOLE_ANSWER

REQUEST = b"POST /v1/half-messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n"


class Written(asyncio.Transport):
    """A connection that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def write(self, data: Any) -> None:
        """Keep it."""
        self.writes.append(bytes(data))

    def resume_reading(self) -> None:
        """Go on; nothing was paused."""

    def is_closing(self) -> bool:
        """Return False until the connection is lost."""
        return False

    def close(self) -> None:
        """End; nothing is open."""


async def answered(headers: Sequence[tuple[bytes, bytes]], errors: list[Exception]) -> list[bytes]:
    """Answer one request with these headers; return what was written."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            await send({"type": WHOLE_ANSWER, "status": 201, "headers": headers, "body": b"{}"})
        except ValueError as error:
            errors.append(error)
            await send({"type": "http.response.start", "status": 500, "headers": []})
            await send({"type": "http.response.body"})

    config, transport = server_config(app, ConnectionLimits()), Written()
    config.load()
    state = ServerState()
    protocol: Any = config.http_protocol_class
    connection = protocol(config=config, server_state=state, app_state={})
    connection.connection_made(transport)
    connection.data_received(REQUEST)
    while state.tasks:
        await asyncio.wait(state.tasks)
    connection.connection_lost(None)
    return transport.writes


async def test_a_whole_answer_is_one_write() -> None:
    [written] = await answered([(b"x-request-id", b"1")], [])
    assert written == b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\nx-request-id: 1\r\n\r\n{}"


@pytest.mark.parametrize(
    "header",
    [
        (b"x-request-id", b"1\r\nset-cookie: a=b"),
        (b"x-request-id", b"1\n"),
        (b"x-request-id", b"1\rset-cookie: a=b"),
        (b"x-request-id", b"\r"),
        (b"x-request-id", b"1\x00"),
        (b"x-request-id\r", b"1"),
    ],
    ids=["both", "line-feed", "carriage-return", "alone", "nul", "in-a-name"],
)
async def test_a_header_cannot_end_its_line(header: tuple[bytes, bytes]) -> None:
    errors: list[Exception] = []
    written = await answered([header], errors)
    assert [str(each) for each in errors] == ["a header has a control character"]
    assert b"".join(written).startswith(b"HTTP/1.1 500 ")
    assert b"set-cookie" not in b"".join(written)


async def test_a_tab_in_a_header_is_sent() -> None:
    [written] = await answered([(b"link", b"a\tb")], [])
    assert b"\r\nlink: a\tb\r\n" in written
