"""The server's HTTP/1.1 protocol with limits, so that every connection ends.

The guard checks complete requests; this class ends connections whose requests never become
complete, and clients that do not read. A request starts only after the parser has accepted all the
bytes that arrived with it. After a fault the complete requests before it are answered, in order,
and nothing after it has an effect.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Hashable
from enum import Enum, auto
from typing import Any, Final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.http.connection.closing_transport import ClosingTransport
from api.http.connection.cycle import Cycle, closing_answer
from api.http.connection.deadline import Deadline
from api.http.connection.open_connections import OpenConnections

HEAD_MAX_BYTES: Final = 65_536
"""URL, headers and trailers in memory, of a request, and of all that wait for an earlier answer.

A smaller excess gets the guard's precise problem.
"""
HEADER_BYTES: Final = 128
"""What a header takes in memory beside its text: five bytes on the wire may be a header."""
CHUNKS_FREE: Final = 4096
CHUNK_BYTES: Final = 256
"""Least bytes of a chunk, on average, of those after ``CHUNKS_FREE``: each costs as much to parse
as thousands of bytes, and others wait meanwhile."""
SEND_BUFFER_BYTES: Final = 65_536
"""What the system may keep of unread answers. By itself it takes megabytes of each connection, and
while it does, no deadline knows that a client does not read."""
DROP_UNSENT: Final = struct.pack("ii", 1, 0)


class _Phase(Enum):
    """What the client has to do before the deadline of reading."""

    HEAD = auto()
    BODY = auto()
    REST = auto()
    """The rest of a request that was answered before its end."""
    IDLE = auto()
    LEAVING = auto()
    NOTHING = auto()


class _BeyondLimit(Exception):
    """A head is too large, chunks are too small, or too many requests wait; ends the parsing."""

    def __init__(self, slug: str) -> None:
        super().__init__(slug)
        self.slug = slug


class BoundedHttpProtocol(HttpToolsProtocol):
    """A connection with deadlines and byte limits."""

    def __init__(self, *arguments: Any, table: OpenConnections, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._table = table
        self._limits = table.limits
        self._head_bytes = 0
        self._received_bytes = 0
        """Since the request began, without what came together with its beginning."""
        self._chunks = 0
        self._rest_bytes = 0
        self._in_head = False
        self._in_body = False
        self._parsing = False
        self._ending = False
        self._at_fault = False
        self._running: Any = None
        self._parsed: Any = None
        """A request that arrived in the data being parsed, and its application."""
        self._phase = _Phase.HEAD
        self._seconds = {
            _Phase.HEAD: self._limits.head_seconds,
            _Phase.BODY: self._limits.body_seconds,
            _Phase.REST: self._limits.drain_seconds,
            _Phase.IDLE: self._limits.idle_seconds,
        }
        self._reading = Deadline(self.loop, self._client_is_late)
        self._writing = Deadline(self.loop, self._answer_is_unread)
        self._unread_bytes = float("inf")

    # -- connection ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline, so that a connection without data ends."""
        self._socket = transport
        self._set_option(socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        self._closing = ClosingTransport(transport, self._finish)
        super().connection_made(self._closing)  # type: ignore[arg-type]
        self._reading.start(self._limits.head_seconds)
        self._table.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the timers, the place in the table, and all that refers to this connection.

        So it is freed at once. The garbage collector looks at what has grown old very rarely.
        """
        self._ending = True
        self._table.lost(self)
        if self._running is not None:  # the server knows only the newest of pipelined requests
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)
        self._reading.release()
        self._writing.release()
        self._closing.release()
        self.pipeline.clear()
        self.scope = self.cycle = self._running = self._parsed = None  # type: ignore[assignment]

    @property
    def idle(self) -> bool:
        """True if no request is being received or answered."""
        return self._phase is _Phase.IDLE

    @property
    def waits_for_client(self) -> bool:
        """True if the client has to send or to read before anything goes on."""
        return self._phase is not _Phase.NOTHING or self.flow.write_paused

    def turn_away(self) -> None:
        """End, because a newer connection needs the place."""
        if self.idle:
            self.transport.close()
        elif self.flow.write_paused or self._phase is _Phase.REST:
            self._table.leave(self)
            self.abort()
        else:
            self._table.leave(self)
            self._fail("request-timeout" if self._in_body else "overloaded")

    def abort(self) -> None:
        """End at once; the system drops what the client has not read."""
        if self._running is not None:
            self._running.disconnected = True  # it writes no more
        self._set_option(socket.SO_LINGER, DROP_UNSENT)
        self._socket.abort()

    def _set_option(self, option: int, value: int | bytes) -> None:
        own = self._socket.get_extra_info("socket")
        if own is not None and not self._socket.is_closing():
            own.setsockopt(socket.SOL_SOCKET, option, value)

    # -- data ------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse, then start the request that is complete enough to start."""
        if self._ending or self._phase is _Phase.REST:
            self._rest_bytes += len(data)
            if self._rest_bytes > self._limits.drain_bytes:
                self.abort()
                return
        if self._ending:
            return
        self._received_bytes += len(data)
        self._parse(data)
        if self._in_head and max(self._head_bytes, self._received_bytes) > HEAD_MAX_BYTES:
            self._fail("headers-too-large")
        if self._parsed is not None:
            parsed, self._parsed = self._parsed, None
            self._start_asgi_task(*parsed)
        self._watch()

    def _parse(self, data: bytes) -> None:
        self._parsing = True
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # the request itself is served; no protocol follows it
            self._ending = self._at_fault = True
            self._close_after_last()
        except httptools.HttpParserError as error:
            limit = error.__context__
            self._fail(limit.slug if isinstance(limit, _BeyondLimit) else "malformed-request")
        finally:
            self._parsing = False

    def on_message_begin(self) -> None:
        """Start to count the bytes and the chunks of a request."""
        super().on_message_begin()
        self._head_bytes = self._received_bytes = self._chunks = 0
        self._in_head = True

    def on_url(self, url: bytes) -> None:
        """Count the URL."""
        self._head_bytes += len(url)
        if self._head_bytes <= HEAD_MAX_BYTES:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header or a trailer; trailers are dropped."""
        self._head_bytes += len(name) + len(value) + HEADER_BYTES
        if self._head_bytes > HEAD_MAX_BYTES:
            raise _BeyondLimit("headers-too-large")
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """End a head; a head above its limit never becomes a request."""
        if self._head_bytes > HEAD_MAX_BYTES:
            raise _BeyondLimit("headers-too-large")
        if self.pipeline and self._too_much_waits():
            raise _BeyondLimit("malformed-request")
        before, cycle = self.cycle, Cycle.of(self, self._authenticated)
        cycle.head_bytes, self.cycle = self._head_bytes, cycle
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))
        self._in_head = False
        self._in_body = True

    def _too_much_waits(self) -> bool:
        waiting: list[Any] = [cycle for cycle, _ in self.pipeline]
        heads = sum(each.head_bytes for each in waiting) + self._head_bytes
        return heads > HEAD_MAX_BYTES or len(self.pipeline) >= self._limits.pipelined

    def on_chunk_header(self) -> None:
        """Count a chunk, also one of a request that was answered before its end."""
        self._chunks += 1
        if self._chunks > CHUNKS_FREE + self._received_bytes // CHUNK_BYTES:
            raise _BeyondLimit("payload-too-large")

    def on_body(self, body: bytes) -> None:
        """Take body bytes of a request that was accepted."""
        if self._in_body:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request that was accepted."""
        if self._in_body:
            self._in_body = False
            self._rest_bytes = 0
            super().on_message_complete()

    def _authenticated(self, tenant: Hashable) -> None:
        self._table.authenticated(self, tenant)

    # -- answers ---------------------------------------------------------------------------------

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        """Start a request, but not while the bytes after its head are still to be judged."""
        if self._parsing:
            self._parsed = (cycle, app)
            return
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """Start what was pipelined, or wait for the next request."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        self._watch()

    def pause_writing(self) -> None:
        """Start the deadline of a client that does not read."""
        super().pause_writing()
        self._unread_bytes = float("inf")
        self._writing.start(self._limits.unread_seconds)
        self._table.unread(self, self._socket.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop that deadline."""
        super().resume_writing()
        self._table.has_read(self)
        if not self._ending:
            self._writing.stop()

    def send_400_response(self, msg: str) -> None:
        """Answer invalid HTTP with a problem document."""
        self._fail("malformed-request")

    # -- the end ---------------------------------------------------------------------------------

    def _fail(self, slug: str) -> None:
        """End the connection because of the request that is being received, or for its lack."""
        if self._ending:
            return
        self._ending = True
        faulty = self.cycle if self._in_body else None
        first = self._first_unanswered()
        if first is not None and first is not faulty:
            self._close_after_last(faulty)
            return
        self._parsed = None
        self._at_fault = True
        if faulty is None or not faulty.response_started:
            self.transport.write(closing_answer(slug))
        if faulty is not None:  # it has had no effect yet: no route acts before the end of a body
            faulty.disconnected = True
            faulty.message_event.set()
        self.transport.close()

    def _first_unanswered(self) -> Any:
        if self._running is not None and not self._running.response_complete:
            return self._running
        return self._parsed[0] if self._parsed else None

    def _close_after_last(self, faulty: Any = None) -> None:
        """Close after the answer to the last complete request; the faulty one is dropped."""
        self._reading.stop()
        if self.pipeline and self.pipeline[0][0] is faulty:
            self.pipeline.popleft()
        last = self.pipeline[0][0] if self.pipeline else self._first_unanswered()
        if last is not None:
            last.keep_alive = False

    def _finish(self) -> None:
        """Close; first read and drop what is left of a request, so that its answer is read."""
        self._ending = True
        self._phase = _Phase.LEAVING
        self._table.leave(self)
        self._writing.start(self._limits.unread_seconds)
        if not (self._in_body or self._at_fault):
            self._reading.stop()
            self._socket.close()
            return
        self._socket.write_eof()
        self.flow.resume_reading()
        self._reading.start(self._limits.drain_seconds)

    # -- deadlines -------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Start the deadline of what the client has to do next, unless it runs already."""
        if self._ending:
            return
        phase = self._next_phase()
        if phase is self._phase:
            return
        self._phase = phase
        seconds = self._seconds.get(phase)
        self._reading.stop() if seconds is None else self._reading.start(seconds)

    def _next_phase(self) -> _Phase:
        if self.pipeline:  # nothing is read until the answers before are sent
            return _Phase.NOTHING
        if self._in_head:
            return _Phase.HEAD
        if self._in_body:
            return _Phase.REST if self.cycle.response_complete else _Phase.BODY
        if self._running is None:
            return _Phase.HEAD
        return _Phase.IDLE if self._running.response_complete else _Phase.NOTHING

    def _client_is_late(self) -> None:
        if self._phase is _Phase.IDLE:
            self.transport.close()
        elif self._phase in (_Phase.REST, _Phase.LEAVING):
            self.abort()
        else:
            self._fail("request-timeout")

    def _answer_is_unread(self) -> None:
        """Cut off a client that has taken nothing since the last look."""
        unread = self._socket.get_write_buffer_size()
        if unread and unread >= self._unread_bytes:
            self.abort()
        elif unread:
            self._unread_bytes = unread
            self._writing.start(self._limits.unread_seconds)
