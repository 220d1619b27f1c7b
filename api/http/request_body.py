"""The body of a request: its media type and its size, checked before anything is parsed.

The declared size and the size that arrives are both checked, so a wrong or missing length costs no
memory. The proxy in front keeps a body until it is complete.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import MutableMapping
from typing import Any

from api.http.exchange import Receive
from api.http.problems import Problem


class ClientGone(Exception):
    """The caller closed the connection before its request was complete."""


def validate_media_type(headers: dict[bytes, bytes]) -> None:
    """Refuse a body that is not plain JSON in UTF-8."""
    media_type = headers.get(b"content-type", b"")
    if media_type != b"application/json":
        name, _, parameters = media_type.lower().partition(b";")
        charset = parameters.translate(None, b' \t"_-;')
        if name.strip() != b"application/json" or charset not in (b"", b"charset=utf8"):
            raise Problem(slug="unsupported-media-type")
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Problem(slug="unsupported-media-type")


def declares_body(headers: dict[bytes, bytes]) -> bool:
    """Return True if a body follows the head."""
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


def declared_size(headers: dict[bytes, bytes], max_bytes: int) -> int:
    """Return the size of a body, or the largest one; raises Problem ``payload-too-large``."""
    declared = headers.get(b"content-length")
    if declared is None:
        return max_bytes if b"transfer-encoding" in headers else 0
    size = int(declared)
    if size > max_bytes:
        raise too_large(max_bytes)
    return size


async def read_body(receive: Receive, max_bytes: int) -> bytes:
    """Read the whole body without its byte order mark, which some programs write.

    Raises Problem ``payload-too-large``, and ClientGone.
    """
    parts: list[bytes] = []
    size, more = 0, True
    while more and size <= max_bytes:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        more = message.get("more_body", False)
    if size > max_bytes:
        raise too_large(max_bytes)
    return b"".join(parts).removeprefix(BOM_UTF8)


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a receive that gives the whole body once, then passes on the server's messages."""
    unread = [body]

    async def replayed() -> MutableMapping[str, Any]:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        return await receive()

    return replayed


def too_large(max_bytes: int) -> Problem:
    """Return the refusal of a body; the server reads and drops the rest of it."""
    return Problem(slug="payload-too-large", detail=f"the body may have at most {max_bytes} bytes")
