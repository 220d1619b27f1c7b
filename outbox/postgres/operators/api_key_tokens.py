"""The text of an API key: ``obx_<id>_<secret>_<checksum>``.

The checksum is keyed with the pepper, so an invented token is refused without a query. Pure.
"""

from __future__ import annotations

import hmac
import re
from hashlib import sha256
from typing import Final

CHECKSUM_BYTES: Final = 8
_TOKEN: Final = re.compile(
    r"obx_(?P<id>[0-9a-f]{16})_(?P<secret>[0-9a-f]{64})_(?P<checksum>[0-9a-f]{16})(?![\s\S])"
)


class ApiKeyTokens:
    """Writes and reads tokens with one pepper."""

    def __init__(self, pepper: bytes) -> None:
        self._pepper = pepper

    def issue(self, key_id: str, secret: str) -> str:
        """Return the bearer token of a key's id and secret."""
        return f"obx_{key_id}_{secret}_{self._checksum(key_id, secret)}"

    def read(self, token: str) -> tuple[str, str] | None:
        """Return id and secret of a token that was issued with this pepper, else None."""
        found = _TOKEN.match(token)
        if found is None:
            return None
        key_id, secret = found["id"], found["secret"]
        right = hmac.compare_digest(self._checksum(key_id, secret), found["checksum"])
        return (key_id, secret) if right else None

    def secret_hmac(self, secret: str) -> bytes:
        """Return what is stored instead of the secret."""
        return hmac.digest(self._pepper, secret.encode(), sha256)

    def _checksum(self, key_id: str, secret: str) -> str:
        text = f"checksum of {key_id}_{secret}".encode()
        return hmac.digest(self._pepper, text, sha256)[:CHECKSUM_BYTES].hex()
