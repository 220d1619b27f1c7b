"""Size limits of a request, checked before anything is parsed.

Both the declared and the streamed size are checked, so a wrong or missing length costs no memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from api.http.exchange import HeaderList, Receive
from api.http.problems import Problem

URL_MAX_BYTES: Final = 8192
_SEPARATORS: Final = 4
"""Bytes of ``: `` and CRLF around each header."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Limits of one request, in bytes."""

    body_bytes: int = 1_048_576
    batch_bytes: int = 8_388_608
    header_bytes: int = 16_384


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


async def read_body(receive: Receive, headers: dict[bytes, bytes], max_bytes: int) -> bytes:
    """Read the whole body, at most ``max_bytes``; the server limits the time.

    Raises Problem ``payload-too-large``, and ClientGone.
    """
    declared = headers.get(b"content-length")
    if declared is not None and int(declared) > max_bytes:
        raise too_large(max_bytes)
    return await _read(receive, max_bytes)


def too_large(max_bytes: int) -> Problem:
    """Return the refusal of a body; the connection closes, so the rest is not read."""
    return Problem(
        slug="payload-too-large",
        detail=f"the body may have at most {max_bytes} bytes",
        headers={"connection": "close"},
    )


async def _read(receive: Receive, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        part: bytes = message.get("body", b"")
        if not parts and not message.get("more_body", False):
            if len(part) > max_bytes:
                raise too_large(max_bytes)
            return part
        size += len(part)
        if size > max_bytes:
            raise too_large(max_bytes)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)
