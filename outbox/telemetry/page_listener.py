"""Serves a few small pages, such as ``/metrics``, on an address of their own.

Whoever reaches the address may ask. So a connection has one request and a few seconds, the oldest
of too many ends, and one making of a page answers everybody who asks meanwhile. Tested by
tests/integration/checker/maintenance/test_metrics_server.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

import httptools

from outbox.telemetry.events import Event, get_logger

CONNECTIONS_MAX: Final = 64
CONNECTION_SECONDS: Final = 10.0
HEAD_MAX_BYTES: Final = 16_384


class BindError(Exception):
    """Nobody can listen on an address; says which and why."""


@dataclass(frozen=True, slots=True)
class Page:
    """The media type of a page, and how it is made."""

    media_type: str
    make: Callable[[], Coroutine[None, None, bytes]]


@asynccontextmanager
async def page_listener(
    bind: str, pages: Mapping[str, Page], *, shared: bool = False
) -> AsyncIterator[None]:
    """Serve pages, by path, for the block. Raises BindError if it cannot listen there.

    ``shared``: several processes listen on the address, and one of them answers.
    """
    host, _, port = bind.rpartition(":")
    listener = _Listener(pages)
    try:
        server = await asyncio.start_server(
            listener.serve,
            host.strip("[]"),
            int(port),
            limit=HEAD_MAX_BYTES,
            reuse_port=shared,
        )
    except (OSError, ValueError, OverflowError) as error:
        raise BindError(f"{bind}: {error}") from None
    try:
        yield
    finally:
        server.close()
        listener.abort()


class _Listener:
    """The pages, those that are being made, and the open connections, the oldest first."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self._pages = pages
        self._made: dict[str, asyncio.Future[bytes]] = {}
        self._open: dict[asyncio.StreamWriter, None] = {}

    def abort(self) -> None:
        """End every connection."""
        for each in self._open:
            each.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and close."""
        self._open[writer] = None
        if len(self._open) > CONNECTIONS_MAX:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.transport.abort()
        try:
            with suppress(TimeoutError, EOFError, asyncio.LimitOverrunError, OSError):
                async with asyncio.timeout(CONNECTION_SECONDS):
                    writer.write(await self._answer(await reader.readuntil(b"\r\n\r\n")))
                    writer.close()
                    await writer.wait_closed()
        finally:
            self._open.pop(writer, None)
            writer.transport.abort()

    async def _answer(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        path = _path_of(rest.partition(b" ")[0])
        page = self._pages.get(path)
        if page is None:
            return _answer("404 Not Found")
        if method not in (b"GET", b"HEAD"):
            return _answer("405 Method Not Allowed", "allow: GET, HEAD")
        try:
            body = await self._shared(path, page)
        except Exception:  # the outermost handler: the next request makes the page again
            get_logger().exception(Event.INTERNAL_ERROR, page=path)
            return _answer("500 Internal Server Error")
        media_type = f"content-type: {page.media_type}"
        return _answer("200 OK", media_type, length=len(body)) + (
            b"" if method == b"HEAD" else body
        )

    async def _shared(self, path: str, page: Page) -> bytes:
        made = self._made.get(path)
        if made is None:
            made = self._made[path] = asyncio.ensure_future(page.make())
            made.add_done_callback(lambda done: self._finished(path, done))
        return await asyncio.shield(made)

    def _finished(self, path: str, made: asyncio.Future[bytes]) -> None:
        del self._made[path]
        if not made.cancelled():
            made.exception()  # everybody who asked may be gone


def _path_of(target: bytes) -> str:
    """Return the path of a request's target, which may be a whole URL; empty if it has none."""
    try:
        return (httptools.parse_url(target).path or b"").decode()
    except (httptools.HttpParserInvalidURLError, UnicodeDecodeError):
        return ""


def _answer(status: str, *headers: str, length: int = 0) -> bytes:
    lines = (f"HTTP/1.1 {status}", *headers, f"content-length: {length}", "connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
