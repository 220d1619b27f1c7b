"""Writes an API key into the database directly: creating the first key by the API needs a key."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.operator import operator_name
from cli.invocation.settings import settings_or_dev
from cli.stores.command_pool import command_pool
from outbox.access import ALL_GROUPS, NewApiKey, Scope
from outbox.errors import TimePast
from outbox.postgres.operators.api_keys import PostgresApiKeys


def create_in_database(
    name: str, scopes: Sequence[str], groups: Sequence[str], expires_at: datetime | None
) -> dict[str, Any]:
    """Store a key with the settings' database and pepper; return the same body as the API.

    Raises ConfigurationError, DatabaseUnavailable, or CommandFailed for what no key may have.
    """
    settings = settings_or_dev()
    if settings.auth_pepper is None:
        raise CommandFailed("OUTBOX_AUTH_PEPPER is not set", ExitCode.USAGE)
    try:
        key = NewApiKey(
            name=name,
            producer_groups=tuple(dict.fromkeys(groups)),
            scopes=tuple(dict.fromkeys(_scope(each) for each in scopes)),
            expires_at=expires_at,
        )
    except ValueError as error:
        raise CommandFailed(str(error), ExitCode.USAGE) from None
    pepper = settings.auth_pepper.get_secret_value().encode()
    try:
        return asyncio.run(store_key(settings.required_database_url(), pepper, key))
    except TimePast:
        line = "--expires-in ends in the past, by PostgreSQL's clock: set the clock of this host"
        raise CommandFailed(line, ExitCode.USAGE) from None


def administrator_key(database_url: str, pepper: str, name: str) -> str:
    """Store a key with all rights; return its text. Raises DatabaseUnavailable."""
    key = NewApiKey(name=name, producer_groups=(ALL_GROUPS,), scopes=(Scope.ADMIN,))
    return str(asyncio.run(store_key(database_url, pepper.encode(), key))["api_key"])


async def store_key(database_url: str, pepper: bytes, key: NewApiKey) -> dict[str, Any]:
    """Store a key; return it with the text that is shown once."""
    async with command_pool(database_url) as pool:
        stored, text = await PostgresApiKeys(pool, pepper).create(key, operator_name())
    return {
        "key_id": stored.key_id,
        "api_key": text,
        "name": stored.name,
        "producer_groups": list(stored.producer_groups),
        "scopes": [scope.value for scope in stored.scopes],
        "created_at": stored.created_at.isoformat(),
        "expires_at": stored.expires_at.isoformat() if stored.expires_at else None,
    }


def _scope(text: str) -> Scope:
    try:
        return Scope(text)
    except ValueError:
        known = " ".join(scope.value for scope in Scope)
        raise CommandFailed(f"no scope {text!r}; known: {known}", ExitCode.USAGE) from None
