"""The text of an API key: ``obx2_<id>_<secret>_<checksum>``.

The checksum is keyed with the pepper, so an invented token is refused without a query. Keys of the
older form ``obx_…`` stay valid; their checksum has no key, so anybody can compute it. Pure.
"""

from __future__ import annotations

import hmac
import re
from hashlib import sha256
from typing import Final
from zlib import crc32

from outbox.access import TokenOrigin

CHECKSUM_BYTES: Final = 8
_TOKEN: Final = re.compile(
    r"(?:(?P<issued>obx2)|obx)_(?P<id>[0-9a-f]{16})_(?P<secret>[0-9a-f]{64})"
    r"_(?P<checksum>(?(issued)[0-9a-f]{16}|[0-9a-f]{8}))(?![\s\S])"
)


class ApiKeyTokens:
    """Writes and reads tokens with one pepper."""

    def __init__(self, pepper: bytes) -> None:
        self._pepper = pepper

    def issue(self, key_id: str, secret: str) -> str:
        """Return the bearer token of a key's id and secret."""
        return f"obx2_{key_id}_{secret}_{self._keyed_checksum(key_id, secret)}"

    def read(self, token: str) -> tuple[str, str] | None:
        """Return id and secret of a token with a right form and checksum, else None."""
        found = _TOKEN.match(token)
        if found is None:
            return None
        key_id, secret = found["id"], found["secret"]
        keyed = found["issued"] is not None
        right = self._keyed_checksum(key_id, secret) if keyed else old_checksum(key_id, secret)
        return (key_id, secret) if hmac.compare_digest(right, found["checksum"]) else None

    def origin(self, token: str) -> TokenOrigin:
        """Return what the text alone proves; see ApiKeys.origin."""
        if self.read(token) is None:
            return TokenOrigin.FOREIGN
        return TokenOrigin.ISSUED if token.startswith("obx2_") else TokenOrigin.UNPROVEN

    def secret_hmac(self, secret: str) -> bytes:
        """Return what is stored instead of the secret."""
        return hmac.digest(self._pepper, secret.encode(), sha256)

    def _keyed_checksum(self, key_id: str, secret: str) -> str:
        text = f"checksum of {key_id}_{secret}".encode()
        return hmac.digest(self._pepper, text, sha256)[:CHECKSUM_BYTES].hex()


def old_checksum(key_id: str, secret: str) -> str:
    """Return the checksum of the older form, which finds mistyped keys only."""
    return f"{crc32(f'{key_id}_{secret}'.encode()):08x}"
