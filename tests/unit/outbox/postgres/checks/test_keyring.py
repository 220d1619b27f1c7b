"""A ring of keys opens what any of its keys has sealed, and nothing else."""

from __future__ import annotations

import base64

import pytest

from outbox.errors import ConfigurationError
from outbox.postgres.checks.keyring import key_ring, new_secret

OLD, NEW = (base64.b64encode(bytes([n]) * 32).decode() for n in (1, 2))


def test_a_rotated_ring_opens_what_the_old_key_sealed() -> None:
    secret = new_secret()
    sealed = key_ring(OLD).seal(secret)
    assert key_ring(f"{NEW}, {OLD}").open(sealed) == secret


def test_the_first_key_seals() -> None:
    sealed = key_ring(f"{NEW},{OLD}").seal("secret")
    assert key_ring(NEW).open(sealed) == "secret"
    with pytest.raises(ConfigurationError, match="no key for a stored secret"):
        key_ring(OLD).open(sealed)


def test_an_altered_secret_is_refused() -> None:
    ring = key_ring(NEW)
    sealed = ring.seal("secret")
    with pytest.raises(ConfigurationError, match="cannot be decrypted"):
        ring.open(sealed[:-1] + bytes([sealed[-1] ^ 1]))


@pytest.mark.parametrize("text", [None, "", "no base64!", base64.b64encode(b"short").decode()])
def test_a_ring_without_a_proper_key_is_refused(text: str | None) -> None:
    with pytest.raises(ConfigurationError, match="OUTBOX_ENCRYPTION_KEYS"):
        key_ring(text)


def test_no_key_is_needed_in_insecure_mode() -> None:
    ring = key_ring(None, insecure=True)
    assert ring.open(ring.seal("secret")) == "secret"
