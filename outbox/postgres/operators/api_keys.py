"""API keys: ``obx_<id>_<secret>_<checksum>``; only an HMAC of the secret is stored.

The checksum detects a mistyped or foreign token without a query. The HMAC is keyed with a pepper
that is not in the database, so a dump has nothing that can be used.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from psycopg.rows import dict_row

from outbox.access import ApiKey, NewApiKey, Scope
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import Pool

SQL: Final = load(__name__)
SECRET_BYTES: Final = 32
_TOKEN: Final = re.compile(r"obx_([0-9a-f]{16})_([0-9a-f]{64})_([0-9a-f]{8})(?![\s\S])")


class PostgresApiKeys:
    """The ApiKeys on a pool; ``pepper`` keys the HMAC over each secret."""

    def __init__(self, pool: Pool, pepper: bytes) -> None:
        self._pool = pool
        self._pepper = pepper

    async def verify(self, token: str) -> ApiKey | None:
        """Return the key that a token belongs to; see ApiKeys.verify."""
        parts = read_token(token)
        if parts is None:
            return None
        key_id, secret = parts
        async with (
            available(),
            self._pool.connection() as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            await cursor.execute(SQL["valid"], {"key_id": key_id})
            row = await cursor.fetchone()
        stored = bytes(row["secret_hmac"]) if row else b""
        equal = hmac.compare_digest(stored, self._hmac(secret))
        return _read(row) if row is not None and equal else None

    async def create(self, key: NewApiKey, actor: str | None) -> tuple[ApiKey, str]:
        """Store a new key; see ApiKeys.create. ``outbox key create --database`` calls this too."""
        key_id, secret = secrets.token_hex(8), secrets.token_hex(SECRET_BYTES)
        asked = {
            "key_id": key_id,
            "name": key.name,
            "secret_hmac": self._hmac(secret),
            "producer_groups": list(key.producer_groups),
            "scopes": [scope.value for scope in key.scopes],
            "expires_at": key.expires_at,
            "actor": actor,
        }
        async with (
            available(),
            self._pool.connection() as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            await cursor.execute(SQL["create"], asked)
            row = await cursor.fetchone()
        assert row is not None
        return _read(row), token_of(key_id, secret)

    async def page(self, after: str, limit: int) -> list[ApiKey]:
        """Return keys that are not revoked, in the order of their ids; see ApiKeys.page."""
        async with (
            available(),
            self._pool.connection() as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            await cursor.execute(SQL["page"], {"after": after, "limit": limit})
            return [_read(row) for row in await cursor.fetchall()]

    async def revoke(self, key_id: str, actor: str | None) -> bool:
        """Revoke a key; see ApiKeys.revoke."""
        async with available(), self._pool.connection() as connection:
            cursor = await connection.execute(SQL["revoke"], {"key_id": key_id, "actor": actor})
            return await cursor.fetchone() is not None

    def _hmac(self, secret: str) -> bytes:
        return hmac.digest(self._pepper, secret.encode(), sha256)


def token_of(key_id: str, secret: str) -> str:
    """Return the bearer token of a key's id and secret."""
    return f"obx_{key_id}_{secret}_{_checksum(key_id, secret)}"


def read_token(token: str) -> tuple[str, str] | None:
    """Return id and secret of a well-formed token with a right checksum, else None."""
    found = _TOKEN.match(token)
    if found is None or found[3] != _checksum(found[1], found[2]):
        return None
    return found[1], found[2]


def _checksum(key_id: str, secret: str) -> str:
    return f"{crc32(f'{key_id}_{secret}'.encode()):08x}"


def _read(row: Mapping[str, Any]) -> ApiKey:
    return ApiKey(
        key_id=row["key_id"],
        name=row["name"],
        producer_groups=tuple(row["producer_groups"]),
        scopes=tuple(Scope(scope) for scope in row["scopes"]),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
    )
