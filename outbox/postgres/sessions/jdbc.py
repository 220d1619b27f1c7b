"""Translates the source database's address to the form that JDBC needs."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlencode

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from outbox.errors import ConfigurationError
from outbox.postgres.sessions.connections import NO_LIMITS
from outbox.reconciliation.snapshot import JdbcAddress

PARAMETERS: Final = {
    "ApplicationName": "outbox-reconcile",
    "binaryTransfer": "true",
    "prepareThreshold": "-1",
    "connectTimeout": "10",
    "options": f"{NO_LIMITS} -c idle_session_timeout=0 -c idle_in_transaction_session_timeout=0",
}
"""Arrays are sent in binary from the first row on, which costs a third of the text form. Limits for
other programs of the database do not end a run; the one of a transaction, which not every release
has, is lifted in the session.
"""
SERVERS: Final = {
    "read-write": "primary",
    "primary": "primary",
    "read-only": "secondary",
    "standby": "secondary",
    "prefer-standby": "preferSecondary",
}
"""JDBC's word for each `target_session_attrs`: which of several hosts is meant."""
KEPT: Final = ("sslmode", "sslrootcert", "sslcert", "sslkey")


def jdbc_address(database_url: str, setting: str = "OUTBOX_DATABASE_URL") -> JdbcAddress:
    """Translate a setting's libpq URL. Raises ConfigurationError if JDBC cannot connect to it."""
    parts = _libpq_parts(database_url, setting)
    host = parts.get("host") or parts.get("hostaddr") or "localhost"
    if host.startswith(("/", "@")):
        raise ConfigurationError(f"{setting}: Spark needs a TCP address, not a socket")
    user = parts.get("user", "")
    database = quote(parts.get("dbname") or user, safe="")
    options = PARAMETERS | {name: parts[name] for name in KEPT if name in parts}
    if (wanted := SERVERS.get(parts.get("target_session_attrs", ""))) is not None:
        options["targetServerType"] = wanted
    return JdbcAddress(
        url=f"jdbc:postgresql://{_authority(host, parts)}/{database}?{urlencode(options)}",
        user=user,
        password=parts.get("password", ""),
    )


def _libpq_parts(url: str, setting: str) -> dict[str, str]:
    """Return the parts as libpq reads them; what is left out comes from its environment.

    Raises ConfigurationError that names the setting, also for a service: only libpq reads its file.
    """
    try:
        given = {name: str(part) for name, part in conninfo_to_dict(url).items()}
        [int(port or 0) for port in given.get("port", "").split(",")]
    except (ProgrammingError, ValueError):
        raise ConfigurationError(f"{setting}: not a PostgreSQL address") from None
    if "service" in given:
        raise ConfigurationError(f"{setting}: name the host and the database, not a service")
    defaults = Conninfo.get_defaults()
    return {each.keyword.decode(): each.val.decode() for each in defaults if each.val} | given


def _authority(host: str, parts: dict[str, str]) -> str:
    """Return ``host:port,host:port``; a single port applies to all hosts, as in libpq."""
    hosts = [f"[{each}]" if ":" in each else each for each in host.split(",")]
    ports = parts.get("port", "").split(",")
    pairs = zip(hosts, ports if len(ports) > 1 else ports * len(hosts), strict=True)
    return ",".join(f"{name}:{port or 5432}" for name, port in pairs)
