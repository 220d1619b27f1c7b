"""Turns the settings into the values that the service is built from. No I/O."""

from __future__ import annotations

from typing import Final

from api.http.rate_limits import RateLimits, rate_limits
from api.http.request_limits import HttpLimits
from api.ingest.ingest import IngestPolicy
from api.ingest.prepare_rules import INTERNAL_TOPICS
from outbox.clock import SystemClock
from outbox.errors import ConfigurationError
from outbox.settings.catalogue import Settings

INSECURE_PEPPER: Final = b"outbox dev-insecure"


def pepper(settings: Settings) -> bytes:
    """Return the pepper of API keys; raises ConfigurationError if it is required and not set."""
    if settings.auth_pepper is not None:
        return settings.auth_pepper.get_secret_value().encode()
    if settings.auth_mode == "dev-insecure":
        return INSECURE_PEPPER
    raise ConfigurationError("OUTBOX_AUTH_PEPPER is not set")


def ingest_policy(settings: Settings) -> IngestPolicy:
    """Return the rules of a prepare."""
    reserved = INTERNAL_TOPICS | ({settings.parked_topic} if settings.parked_topic else set())
    return IngestPolicy(
        message_max_bytes=settings.message_max_bytes,
        reserved_topics=frozenset(reserved),
        reject_half_messages=settings.reject_half_messages,
    )


def http_limits(settings: Settings) -> HttpLimits:
    """Return the size and concurrency limits of requests."""
    return HttpLimits(
        body_bytes=settings.http_max_body_bytes,
        batch_bytes=settings.http_max_batch_bytes,
        header_bytes=settings.http_max_header_bytes,
        inflight=settings.http_max_inflight,
    )


def rates(settings: Settings, clock: SystemClock) -> RateLimits:
    """Return the rate limits of clients."""
    return rate_limits(
        settings.rate_prepare_per_second,
        settings.rate_read_per_second,
        settings.http_workers,
        clock,
    )


def group_defaults(settings: Settings) -> dict[str, int]:
    """Return the defaults of a producer group's settings."""
    return {
        "check_interval_seconds": settings.check_interval_seconds,
        "check_max": settings.check_max,
        "check_timeout_seconds": settings.check_timeout_seconds,
        "transaction_timeout_seconds": settings.transaction_timeout_seconds,
        "max_age_seconds": settings.max_age_seconds,
        "max_inflight": settings.check_max_inflight_per_group,
    }
