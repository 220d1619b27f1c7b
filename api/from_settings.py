"""Turns the settings into the values that the service is built from. No I/O."""

from __future__ import annotations

from typing import Final

from api.http.authentication.loopback_authenticator import is_loopback
from api.http.rate_limits import RateLimit
from api.ingest.prepare_rules import INTERNAL_TOPICS, PreparePolicy
from outbox.clock import SystemClock
from outbox.errors import ConfigurationError
from outbox.postgres.checks.keyring import KeyRing, key_ring
from outbox.settings.catalogue import Settings

INSECURE_PEPPER: Final = b"outbox dev-insecure"
MESSAGE_MAX_BYTES: Final = 1_000_000
"""Largest size of key, value and caller headers, decoded; Kafka's own default is just above it."""
CHECK_TIMEOUT_SECONDS: Final = 5
CHECKS_AT_ONCE: Final = 8
"""Concurrent checks of a group that does not set `max_inflight`."""


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


def prepare_policy(settings: Settings) -> PreparePolicy:
    """Return the rules of a prepare."""
    reserved = INTERNAL_TOPICS | ({settings.parked_topic} if settings.parked_topic else set())
    return PreparePolicy(
        message_max_bytes=MESSAGE_MAX_BYTES,
        reserved_topics=frozenset(reserved),
        reject_half_messages=settings.reject_half_messages,
    )


def prepare_rate(settings: Settings, clock: SystemClock) -> RateLimit:
    """Return the limit of a key's prepares; all processes together grant the configured rate."""
    return RateLimit("prepare", settings.rate_prepare_per_second / settings.http_workers, clock)


def read_rate(settings: Settings, clock: SystemClock) -> RateLimit:
    """Return the same for its reads."""
    return RateLimit("read", settings.rate_read_per_second / settings.http_workers, clock)


def group_defaults(settings: Settings) -> dict[str, int]:
    """Return the defaults of a producer group's settings."""
    return {
        "check_interval_seconds": settings.check_interval_seconds,
        "check_max": settings.check_max,
        "check_timeout_seconds": CHECK_TIMEOUT_SECONDS,
        "transaction_timeout_seconds": settings.transaction_timeout_seconds,
        "max_age_seconds": settings.max_age_seconds,
        "max_inflight": CHECKS_AT_ONCE,
    }
