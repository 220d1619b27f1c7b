"""Encrypts signing secrets with AES-GCM and a ring of keys: the first encrypts, each can decrypt.

To rotate, put a new key first. The old key still decrypts its secrets until you remove it from the
ring. The stored form is the nonce and the ciphertext. The group's name is authenticated with it, so
a secret that is copied to another group does not open.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from outbox.errors import ConfigurationError

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
SECRET_PREFIX: Final = "whsec_"
_INSECURE: Final = hashlib.sha256(b"outbox dev-insecure").digest()


class KeyRing:
    """The keys of one installation, newest first; each 32 bytes."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = [AESGCM(key) for key in keys]

    def seal(self, secret: str, producer_group: str) -> bytes:
        """Encrypt a group's secret for storage."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._keys[0].encrypt(nonce, secret.encode(), producer_group.encode())

    def open(self, stored: bytes, producer_group: str) -> str:
        """Decrypt a group's stored secret.

        Raises ConfigurationError when no key of the ring has encrypted it, or it was altered, or
        it is the secret of another group.
        """
        nonce, sealed = stored[:NONCE_BYTES], stored[NONCE_BYTES:]
        for key in self._keys:
            with suppress(InvalidTag, ValueError):
                return key.decrypt(nonce, sealed, producer_group.encode()).decode()
        raise ConfigurationError(
            f"OUTBOX_ENCRYPTION_KEYS has no key for the check secret of {producer_group}: put"
            f" the lost key back, or run `outbox group rotate-secret {producer_group}`"
        )


def key_ring(text: str | None, *, insecure: bool = False) -> KeyRing:
    """Read OUTBOX_ENCRYPTION_KEYS: base64 of 32 bytes each, comma separated, newest first.

    With ``insecure`` (AUTH_MODE=dev-insecure) it may be empty; then a publicly known key is used.
    Raises ConfigurationError.
    """
    if not text:
        if insecure:
            return KeyRing([_INSECURE])
        raise ConfigurationError("OUTBOX_ENCRYPTION_KEYS is not set")
    return KeyRing([_read_key(part.strip()) for part in text.split(",")])


def valid_secrets(
    decrypt: Callable[[bytes, str], str], row: Mapping[str, Any], name: str
) -> tuple[str, ...]:
    """Decrypt the secrets in the row of a group that sign its checks now, newest first.

    Leaves out each previous secret that cannot be decrypted: a new secret is what replaces a secret
    whose key is lost. Raises ConfigurationError when the present one cannot be decrypted.
    """
    opened = [decrypt(bytes(row["secret"]), name)] if row["secret"] else []
    for stored, expires_at in zip(row["previous_secrets"], row["previous_expire_at"], strict=True):
        if expires_at > row["now"]:
            with suppress(ConfigurationError):
                opened.append(decrypt(bytes(stored), name))
    return tuple(opened)


def new_secret() -> str:
    """Return a fresh signing secret: ``whsec_`` and base64 of 32 random bytes."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def _read_key(text: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ConfigurationError("OUTBOX_ENCRYPTION_KEYS: a key is not base64") from None
    if len(key) != KEY_BYTES:
        raise ConfigurationError("OUTBOX_ENCRYPTION_KEYS: a key is not 32 bytes long")
    return key
