"""Reads an address of PostgreSQL as libpq does: its parts, then the environment."""

from __future__ import annotations

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from outbox.errors import ConfigurationError


def libpq_parts(url: str, setting: str) -> dict[str, str]:
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
