"""A ring of keys opens what any of its keys has sealed for the same group, and nothing else."""

from __future__ import annotations

import base64

import pytest

from outbox.errors import ConfigurationError
from outbox.postgres.checks.keyring import key_ring, new_secret

OLD, NEW = (base64.b64encode(bytes([n]) * 32).decode() for n in (1, 2))


def test_a_rotated_ring_opens_what_the_old_key_sealed() -> None:
    secret = new_secret()
    sealed = key_ring(OLD).seal(secret, "billing")
    assert key_ring(f"{NEW}, {OLD}").open(sealed, "billing") == secret


@pytest.mark.parametrize("place", [0, 12, -1])
def test_an_altered_secret_is_refused(place: int) -> None:
    ring = key_ring(NEW)
    sealed = bytearray(ring.seal("secret", "billing"))
    sealed[place] ^= 1
    with pytest.raises(ConfigurationError):
        ring.open(bytes(sealed), "billing")


@pytest.mark.parametrize("other", ["billings", "Billing", ""])
def test_a_secret_that_was_copied_to_another_group_is_refused(other: str) -> None:
    ring = key_ring(NEW)
    with pytest.raises(ConfigurationError, match="has no key for the check secret"):
        ring.open(ring.seal("secret", "billing"), other)


@pytest.mark.parametrize("text", [None, "", "no base64!", base64.b64encode(b"short").decode()])
def test_a_ring_without_a_proper_key_is_refused(text: str | None) -> None:
    with pytest.raises(ConfigurationError, match="OUTBOX_ENCRYPTION_KEYS"):
        key_ring(text)
