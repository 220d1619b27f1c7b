"""API keys; only an HMAC of each secret is stored.

The HMAC is keyed with a pepper that is not in the database, so a dump has nothing that can be used.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import psycopg
from msgspec import convert

from outbox.access import ALL_GROUPS, ApiKey, Caller, NewApiKey, Scope
from outbox.errors import TimePast
from outbox.postgres.operators.api_key_tokens import ApiKeyTokens
from outbox.postgres.sessions.availability import lent
from outbox.postgres.sessions.reads import rows_from, rows_of
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load(__name__)
SECRET_BYTES: Final = 32


class PostgresApiKeys:
    """API keys; the secret itself is never stored. ``pepper`` keys the HMAC over each secret."""

    def __init__(self, pool: Pool, pepper: bytes) -> None:
        self._pool = pool
        self._tokens = ApiKeyTokens(pepper)

    def is_issued(self, token: str) -> bool:
        """Return True if we issued this token; the key may have ended since. Costs no query."""
        return self._tokens.read(token) is not None

    async def verify(self, tokens: Sequence[str]) -> list[Caller | None]:
        """Return the caller of each bearer token, or None, by one query.

        Notes which were used and which have ended, at most once a minute for each key.
        Raises DatabaseUnavailable.
        """
        parts = [self._tokens.read(token) for token in tokens]
        key_ids = [part[0] for part in parts if part is not None]
        async with lent(self._pool) as connection:
            valid = await rows_of(connection, SQL["valid"], {"key_ids": key_ids})
            rows = {row["key_id"]: row for row in valid}
            unnoted = {row["key_id"] for row in valid if row["unnoted"]}
            found = [self._verified(rows.get(part[0]), part[1]) if part else None for part in parts]
            used = unnoted.intersection(each.key_id for each in found if each)
            refused = {key_id for key_id in key_ids if key_id not in rows}
            if used or refused:
                await _note(connection, used, refused)
        return found

    def _verified(self, row: Mapping[str, Any] | None, secret: str) -> Caller | None:
        if row is None:
            return None
        equal = hmac.compare_digest(row["secret_hmac"], self._tokens.secret_hmac(secret))
        return _caller(row) if equal else None

    async def create(self, key: NewApiKey, actor: str | None) -> tuple[ApiKey, str]:
        """Store a new key; return it with its token, which cannot be read again."""
        key_id, secret = secrets.token_hex(8), secrets.token_hex(SECRET_BYTES)
        asked = {
            "key_id": key_id,
            "name": key.name,
            "secret_hmac": self._tokens.secret_hmac(secret),
            "producer_groups": list(key.producer_groups),
            "scopes": [scope.value for scope in key.scopes],
            "expires_at": key.expires_at,
            "actor": actor,
        }
        stored = await rows_from(self._pool, SQL["create"], asked)
        if not stored:
            raise TimePast
        return convert(stored[0], ApiKey), self._tokens.issue(key_id, secret)

    async def page(
        self,
        after: str,
        limit: int,
        groups: Collection[str] | None,
        *,
        refused: bool = False,
    ) -> list[ApiKey]:
        """Return the valid keys after ``after``, by id; only keys within ``groups``, None: all.

        With ``refused`` the keys that have ended and that somebody used in the last five minutes.
        """
        asked = {
            "after": after,
            "limit": limit,
            "groups": None if groups is None else list(groups),
            "refused": refused,
        }
        return convert(await rows_from(self._pool, SQL["page"], asked), list[ApiKey])

    async def revoke(
        self,
        key_id: str,
        actor: str | None,
        groups: Collection[str] | None,
        operator: str | None = None,
    ) -> bool:
        """Revoke a key; False if there is no such key within ``groups`` (None: all)."""
        asked = {
            "key_id": key_id,
            "actor": actor,
            "groups": None if groups is None else list(groups),
            "operator": operator,
        }
        return bool(await rows_from(self._pool, SQL["revoke"], asked))


async def _note(
    connection: AsyncConnection, used: Collection[str], refused: Collection[str]
) -> None:
    """Note the use of keys; whoever waits for the verification does not wait for a standby too.

    A server that cannot write now still verifies keys.
    """
    with suppress(psycopg.Error):
        async with connection.transaction():
            await connection.execute("SET LOCAL synchronous_commit = off")
            await connection.execute(SQL["note"], {"used": [*used], "refused": [*refused]})


def _caller(row: Mapping[str, Any]) -> Caller:
    groups = frozenset(row["producer_groups"])
    return Caller(
        key_id=row["key_id"],
        scopes=frozenset(map(Scope, row["scopes"])),
        groups=None if ALL_GROUPS in groups else groups,
        root_key_id=row["root_key_id"],
        root_groups=frozenset(row["root_groups"] or ()),
    )
