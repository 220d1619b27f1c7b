"""Reads an address of PostgreSQL as libpq does: with a service file and its environment."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from outbox.errors import ConfigurationError

_SERVICE: Final = {"service": "PGSERVICE", "servicefile": "PGSERVICEFILE"}


def libpq_parts(url: str, setting: str) -> dict[str, str]:
    """Return the parts as libpq reads them: the URL, then its service, then the environment.

    Raises ConfigurationError that names the setting.
    """
    try:
        given = {name: str(part) for name, part in conninfo_to_dict(url).items()}
        parts = _defaults(given) | given
        [int(port or 0) for port in parts.get("port", "").split(",")]
    except (ProgrammingError, ValueError):
        raise ConfigurationError(f"{setting}: not a PostgreSQL address") from None
    return parts


def _defaults(given: Mapping[str, str]) -> dict[str, str]:
    """Return what libpq takes for the parts that an address leaves out."""
    named = {variable: given[part] for part, variable in _SERVICE.items() if part in given}
    with _environment(named):
        found = Conninfo.get_defaults()
    return {each.keyword.decode(): each.val.decode() for each in found if each.val}


@contextmanager
def _environment(named: Mapping[str, str]) -> Iterator[None]:
    """Set variables for the block: libpq reads a service file only for a name from there."""
    before = {variable: os.environ.get(variable) for variable in named}  # noqa: TID251
    os.environ.update(named)  # noqa: TID251
    try:
        yield
    finally:
        for variable, text in before.items():
            os.environ.pop(variable)  # noqa: TID251
            if text is not None:
                os.environ[variable] = text  # noqa: TID251
