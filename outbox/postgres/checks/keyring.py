"""Encrypts signing secrets with AES-GCM and a ring of keys: the first encrypts, each can decrypt.

To rotate, put a new key first. The old key still decrypts its secrets until you remove it from the
ring. The stored form is: a version byte, four bytes that identify the key, the nonce, the
ciphertext. The group's name is authenticated with it, so a secret that is copied to another group
does not open.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from outbox.errors import ConfigurationError

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
SECRET_PREFIX: Final = "whsec_"
_VERSION: Final = b"\x02"
_NAME_BYTES: Final = 4
_HEAD_BYTES: Final = 1 + _NAME_BYTES
_SEALED_AT: Final = _HEAD_BYTES + NONCE_BYTES
_INSECURE: Final = hashlib.sha256(b"outbox dev-insecure").digest()


class KeyRing:
    """The keys of one installation, newest first; each 32 bytes."""

    def __init__(self, keys: tuple[bytes, ...]) -> None:
        self._first = _name_of(keys[0])
        self._keys = {_name_of(key): AESGCM(key) for key in keys}

    def seal(self, secret: str, producer_group: str) -> bytes:
        """Encrypt a group's secret for storage."""
        nonce = os.urandom(NONCE_BYTES)
        sealed = self._keys[self._first].encrypt(nonce, secret.encode(), _bound(producer_group))
        return _VERSION + self._first + nonce + sealed

    def open(self, stored: bytes, producer_group: str) -> str:
        """Decrypt a group's stored secret.

        Raises ConfigurationError when no key of the ring has encrypted it, or it was altered, or
        it is the secret of another group.
        """
        version, name = stored[:1], stored[1 : 1 + _NAME_BYTES]
        nonce, sealed = stored[_HEAD_BYTES:_SEALED_AT], stored[_SEALED_AT:]
        key = self._keys.get(name)
        if version != _VERSION or key is None:
            raise ConfigurationError(
                f"OUTBOX_ENCRYPTION_KEYS has no key for the check secret of {producer_group}: put"
                f" the lost key back, or run `outbox group rotate-secret {producer_group}`"
            )
        try:
            return key.decrypt(nonce, sealed, _bound(producer_group)).decode()
        except (InvalidTag, ValueError):
            raise ConfigurationError("a stored secret cannot be decrypted with its key") from None


def _bound(producer_group: str) -> bytes:
    return _VERSION + producer_group.encode()


def key_ring(text: str | None, *, insecure: bool = False) -> KeyRing:
    """Read OUTBOX_ENCRYPTION_KEYS: base64 of 32 bytes each, comma separated, newest first.

    With ``insecure`` (AUTH_MODE=dev-insecure) it may be empty; then a publicly known key is used.
    Raises ConfigurationError.
    """
    if not text:
        if insecure:
            return KeyRing((_INSECURE,))
        raise ConfigurationError("OUTBOX_ENCRYPTION_KEYS is not set")
    return KeyRing(tuple(_read_key(part.strip()) for part in text.split(",")))


def valid_secrets(
    decrypt: Callable[[bytes, str], str], stored: bytes, previous: Sequence[bytes], name: str
) -> tuple[str, ...]:
    """Decrypt the secrets that sign the checks of a group, newest first.

    Leaves out each previous secret that cannot be decrypted: a new secret is what replaces a secret
    whose key is lost. Raises ConfigurationError when the present one cannot be decrypted.
    """
    opened = [decrypt(bytes(stored), name)] if stored else []
    for each in previous:
        with suppress(ConfigurationError):
            opened.append(decrypt(bytes(each), name))
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


def _name_of(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()[:_NAME_BYTES]
