"""The settings that the programs of a run are given: real ones only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from devservers.child import CLEAN_ENVIRONMENT

KAFKA_CONFIG: Final = '{"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500}'


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAddresses:
    """The addresses and shared secrets of the programs."""

    database_url: str
    bootstrap_servers: str
    pepper: str
    encryption_key: str


def program_environment(
    addresses: ServiceAddresses, *, http_port: int, metrics_port: int, further: Mapping[str, str]
) -> dict[str, str]:
    """Return the whole environment of an API or a checker."""
    return {
        **CLEAN_ENVIRONMENT,
        "OUTBOX_DATABASE_URL": addresses.database_url,
        "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": addresses.bootstrap_servers,
        "OUTBOX_KAFKA_CONFIG": KAFKA_CONFIG,
        "OUTBOX_HTTP_BIND": f"127.0.0.1:{http_port}",
        "OUTBOX_CHECKER_METRICS_BIND": f"127.0.0.1:{metrics_port}",
        "OUTBOX_CHECK_ALLOW_CIDRS": "127.0.0.0/8",
        "OUTBOX_AUTH_MODE": "keys",
        "OUTBOX_AUTH_PEPPER": addresses.pepper,
        "OUTBOX_ENCRYPTION_KEYS": addresses.encryption_key,
        "OUTBOX_LOG_LEVEL": "warning",
        # The documentation costs 0.2 s per start, and an API often lives only for a second here.
        "OUTBOX_DOCS_ENABLED": "false",
        **further,
    }
