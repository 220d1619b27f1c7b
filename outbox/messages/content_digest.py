"""The digest of a record's content: 8 bytes by which two stores are compared.

It is a chained XXH64. Each field is hashed with the previous result as its seed, starting
at 42; Spark's ``xxhash64(a, b, …)`` computes the same bits. Fields in order: message id text,
topic, a presence flag (``kv``, ``k-``, ``-v``, ``--``), key, value, then name and value of each
covered header. A null field is skipped. Without the flag, (key ``a``, no value) would equal (no
key, value ``a``); for the same reason a zero byte follows the name of a header whose value is null.
A writer can craft other content with the same XXH64; the ACL of the topic is the protection. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from xxhash import xxh64_intdigest

SEED: Final = 42
NO_VALUE: Final = b"\0"
_SIGN: Final = 1 << 63
_WRAP: Final = 1 << 64


def content_digest(
    message_id: bytes | None,
    topic: str,
    key: bytes | None,
    value: bytes | None,
    covered_headers: Iterable[tuple[str, bytes | None]],
) -> int:
    """Return the signed 64-bit digest of a record's identity and content.

    The id and the headers are those of the record: encoded texts.
    """
    digest = SEED if message_id is None else xxh64_intdigest(message_id, SEED)
    digest = xxh64_intdigest(topic.encode(), digest)
    flag = (b"-" if key is None else b"k") + (b"-" if value is None else b"v")
    digest = xxh64_intdigest(flag, digest)
    if key is not None:
        digest = xxh64_intdigest(key, digest)
    if value is not None:
        digest = xxh64_intdigest(value, digest)
    for name, text in covered_headers:
        if text is None:
            digest = xxh64_intdigest(name.encode() + NO_VALUE, digest)
        else:
            digest = xxh64_intdigest(text, xxh64_intdigest(name.encode(), digest))
    return digest - _WRAP if digest >= _SIGN else digest
