"""Turns the settings into the values that the service is built from. No I/O."""

from __future__ import annotations

from typing import Final

from api.http.authentication.loopback_authenticator import is_loopback
from outbox.errors import ConfigurationError
from outbox.postgres.checks.keyring import KeyRing, key_ring
from outbox.settings.catalogue import Settings

INSECURE_PEPPER: Final = b"outbox dev-insecure"


def refuse_insecure_bind(settings: Settings, listens_on: str | None) -> None:
    """Raise ConfigurationError if callers without a key could come from another machine.

    ``listens_on`` is the host of the listener, None if the server is not our own program.
    """
    if settings.auth_mode == "dev-insecure" and not is_loopback(listens_on or ""):
        raise ConfigurationError(
            "OUTBOX_AUTH_MODE=dev-insecure is served by outbox-api alone, on a loopback address;"
            " OUTBOX_HTTP_BIND is not one"
        )


def pepper(settings: Settings) -> bytes:
    """Return the pepper of API keys; raises ConfigurationError if it is required and not set."""
    if settings.auth_pepper is not None:
        return settings.auth_pepper.get_secret_value().encode()
    if settings.auth_mode == "dev-insecure":
        return INSECURE_PEPPER
    raise ConfigurationError("OUTBOX_AUTH_PEPPER is not set")


def key_ring_of(settings: Settings) -> KeyRing:
    """Return the keys of check secrets; raises ConfigurationError if they are missing or wrong."""
    keys = settings.encryption_keys
    insecure = settings.auth_mode == "dev-insecure"
    return key_ring(keys.get_secret_value() if keys else None, insecure=insecure)
