"""Size limits of a request, checked before anything is parsed.

Both the declared and the streamed size are checked, so a wrong or missing length costs no memory.
Large bodies share a bounded amount of memory until their requests are answered; the tenant who
holds most of it pays for an excess, so slow bodies of one tenant refuse no other.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from api.http.exchange import HeaderList, Receive
from api.http.problems import Problem

URL_MAX_BYTES: Final = 8192
_SEPARATORS: Final = 4
"""Bytes of ``: `` and CRLF around each header."""
BATCHES_HELD: Final = 32
"""How many of the largest batches one tenant may have under way: 256 MiB."""
COUNTED_BYTES: Final = 65_536
"""A smaller body is counted only while it arrives: the room for requests bounds the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Limits of one request, in bytes."""

    body_bytes: int = 1_048_576
    batch_bytes: int = 8_388_608
    header_bytes: int = 16_384

    @property
    def held_bytes(self) -> int:
        """Most bytes of the bodies that one tenant has under way."""
        return BATCHES_HELD * self.batch_bytes


class ClientGone(Exception):
    """The caller closed the connection before its request was complete."""


def validate_head(raw_path: bytes, query: bytes, headers: HeaderList, limits: HttpLimits) -> None:
    """Refuse a URL or a header block that is too large."""
    if len(raw_path) + len(query) >= URL_MAX_BYTES:
        raise Problem(slug="uri-too-long")
    size = sum([len(name) + len(value) for name, value in headers])
    if size + _SEPARATORS * len(headers) > limits.header_bytes:
        raise Problem(slug="headers-too-large")


def validate_media_type(headers: dict[bytes, bytes]) -> None:
    """Refuse a body whose media type is not plain JSON in UTF-8."""
    media_type = headers.get(b"content-type", b"")
    if media_type != b"application/json":
        name, _, parameters = media_type.lower().partition(b";")
        charset = parameters.replace(b" ", b"").replace(b'"', b"")
        if name.strip() != b"application/json" or charset not in (b"", b"charset=utf-8"):
            raise Problem(slug="unsupported-media-type")
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Problem(slug="unsupported-media-type")


def too_large(max_bytes: int) -> Problem:
    """Return the refusal of a body; the connection closes, so the rest is not read."""
    return Problem(
        slug="payload-too-large",
        detail=f"the body may have at most {max_bytes} bytes",
        headers={"connection": "close"},
    )


@dataclass(slots=True, eq=False)
class _Body:
    """A body that is still arriving, or whose request is not answered yet."""

    tenant: Hashable
    patience: asyncio.Timeout
    size: int = 0


class BodyReader:
    """Reads bodies; those that arrive and those that are served hold about ``held_bytes``.

    Above it the tenant who holds most loses the oldest one that arrives. What is complete is kept,
    so each of several tenants may hold as much as the largest one.
    """

    def __init__(self, held_bytes: int) -> None:
        self._free = held_bytes
        self._arriving: dict[_Body, None] = {}
        self._complete: dict[Receive, _Body] = {}

    async def read(
        self, receive: Receive, headers: dict[bytes, bytes], max_bytes: int, tenant: Hashable
    ) -> bytes:
        """Read the whole body, at most ``max_bytes``; the server limits the time.

        Call ``release`` once the request is answered. Raises Problem ``payload-too-large``,
        ClientGone, and TimeoutError for a body that lost its place.
        """
        declared = headers.get(b"content-length")
        if declared is not None and int(declared) > max_bytes:
            raise too_large(max_bytes)
        content, more = await _next_part(receive)
        if len(content) > max_bytes:
            raise too_large(max_bytes)
        if more:
            content = await self._read_rest(receive, content, max_bytes, tenant)
        if len(content) >= COUNTED_BYTES:
            self._complete[receive] = _Body(tenant, asyncio.timeout(None), len(content))
            self._free -= len(content)
        return content

    def release(self, receive: Receive) -> None:
        """Forget the body of a request that was answered."""
        body = self._complete.pop(receive, None)
        if body is not None:
            self._free += body.size

    async def _read_rest(
        self, receive: Receive, first: bytes, max_bytes: int, tenant: Hashable
    ) -> bytes:
        """Return a body that did not come at once."""
        async with asyncio.timeout(None) as patience:
            body = _Body(tenant, patience)
            self._arriving[body] = None
            try:
                parts, size, more = [first], len(first), True
                while more:
                    self._hold(body, len(parts[-1]))
                    part, more = await _next_part(receive)
                    size += len(part)
                    if size > max_bytes:
                        raise too_large(max_bytes)
                    parts.append(part)
                return b"".join(parts)
            finally:
                self._forget(body)

    def _hold(self, body: _Body, size: int) -> None:
        """Count bytes of an incomplete body; above the limit one body loses its place."""
        if body not in self._arriving:
            return
        body.size += size
        self._free -= size
        while self._free < 0:
            held: Counter[Hashable] = Counter()
            for each in (*self._arriving, *self._complete.values()):
                held[each.tenant] += each.size
            [(most, _)] = held.most_common(1)
            oldest = next(
                (each for each in self._arriving if each.tenant == most and each.size), None
            )
            if oldest is None:
                return
            self._forget(oldest)
            oldest.patience.reschedule(0)

    def _forget(self, body: _Body) -> None:
        if body in self._arriving:
            del self._arriving[body]
            self._free += body.size


async def _next_part(receive: Receive) -> tuple[bytes, bool]:
    """Return the next bytes of a body, and whether more follow; raises ClientGone."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message.get("body", b""), message.get("more_body", False)
