"""Producer groups: registration, changes under a version, pauses, new secrets; all are audited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from outbox.access import Caller
from outbox.checks.producer_group import (
    GroupHealth,
    Precondition,
    ProducerGroup,
    RotatedSecret,
    StoredGroup,
    require_scopes,
    require_version,
)
from outbox.errors import ConfigurationError, GroupInUse, PreconditionFailed, UnknownGroup
from outbox.operators.message_view import OperatorAction
from outbox.postgres.checks.keyring import KeyRing, new_secret, valid_secrets
from outbox.postgres.messages.audit_log import audit_entry
from outbox.postgres.schema.group_rows import read_group
from outbox.postgres.sessions.availability import lent, transaction
from outbox.postgres.sessions.reads import read_in_key_order, rows_of
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool, AsyncConnection

SQL: Final = load(__name__)
SETTINGS: Final = (
    "check_url",
    "check_interval_seconds",
    "check_max",
    "check_timeout_seconds",
    "transaction_timeout_seconds",
    "on_check_max",
    "backoff",
    "max_inflight",
    "batch_check",
    "check_payload",
    "topics",
    "max_age_seconds",
)
"""What a PUT replaces."""
DUE_ROWS: Final = 1000
"""The most due checks that are counted of each delay class."""
PREVIOUS_SECRETS: Final = 9
"""The most secrets that sign besides the present one; the oldest one goes."""
OVERLAP_SECONDS: Final = 86_400
"""How long the secret that a PUT replaces signs too."""
DELETION_SECONDS: Final = 2
"""The longest look for unfinished messages of a group that is deleted; its prepares wait."""


class PostgresProducerGroups:
    """Registered producer groups; every change is audited and raises the version.

    ``ring`` encrypts the signing secrets. Every method raises DatabaseUnavailable.
    """

    def __init__(self, pool: AnyPool, ring: KeyRing) -> None:
        self._pool = pool
        self._ring = ring

    async def page(
        self, names: Collection[str] | None, after: str, limit: int, *, unasked: bool = False
    ) -> list[ProducerGroup]:
        """Return the groups after ``after``, by name; ``names`` None means all.

        ``unasked``: only those that are paused, or whose breaker is not closed.
        """
        found = None if names is None else list(names)
        async with lent(self._pool) as connection:
            rows = await _rows(connection, found, after, limit, unasked=unasked)
        return [read_group(row) for row in rows]

    async def get(self, name: str) -> ProducerGroup:
        """Return one group. Raises UnknownGroup."""
        async with lent(self._pool) as connection:
            return read_group(await _row(connection, name))

    async def with_secrets(self, name: str) -> tuple[ProducerGroup, datetime]:
        """Return one group with its signing secrets, and the database's time to sign with.

        Raises UnknownGroup.
        """
        async with lent(self._pool) as connection:
            row = await _row(connection, name)
        return read_group(row, valid_secrets(self._ring.open, row, name)), row["now"]

    async def health(self, name: str) -> GroupHealth:
        """Return the due checks and the age of the secret of a group. Raises UnknownGroup."""
        asked = {"name": name, "due": DUE_ROWS}
        async with transaction(self._pool) as connection:
            await read_in_key_order(connection)
            rows = await rows_of(connection, SQL["health"], asked)
        if not rows:
            raise UnknownGroup(name)
        return GroupHealth(**rows[0])

    async def put(
        self, group: ProducerGroup, precondition: Precondition, caller: Caller
    ) -> StoredGroup:
        """Register or replace a group; another secret than its own replaces that too.

        Raises ScopeMissing when the caller may not make this change, and PreconditionRequired or
        PreconditionFailed when the group exists and would change, or when the version that the
        caller has read is of a group that was deleted.
        """
        fresh, settings = None if group.secrets else new_secret(), settings_of(group)
        secret = fresh or group.secrets[0]
        sealed = self._ring.seal(secret, group.name)
        async with self._change(group.name) as connection:
            rows = await _rows(connection, [group.name])
            stored = read_group(rows[0]) if rows else None
            if stored is None and isinstance(precondition, frozenset):
                raise PreconditionFailed(0)
            require_scopes(caller, stored, group)
            turned = bool(rows) and fresh is None and not self._has(rows[0], secret)
            if stored is not None and settings_of(stored) == settings and not turned:
                return StoredGroup(group=stored)
            if stored is not None:
                require_version(precondition, stored.version)
                await connection.execute(SQL["close_breaker"], {"group": stored.id})
            put = {"name": group.name, "secret": sealed, **settings}
            await connection.execute(SQL["put"], put)
            if stored is None:
                await connection.execute(
                    SQL["register_again"], {"name": group.name, "secret": sealed}
                )
            if turned:
                await self._replace(connection, group.name, secret, OVERLAP_SECONDS, caller.key_id)
            changed = read_group(await _row(connection, group.name))
            by = OperatorAction(operator=None, reason=None, key_id=caller.key_id)
            await connection.execute(*audit_entry("group.put", group.name, by, settings))
        if stored is None:
            return StoredGroup(group=changed, change="created", secret=fresh)
        return StoredGroup(group=changed, change="replaced")

    async def delete(self, name: str, precondition: Precondition, key_id: str | None) -> None:
        """Delete a group. Raises UnknownGroup, PreconditionFailed, GroupInUse."""
        async with self._change(name) as connection:
            stored = read_group(await _row(connection, name))
            if precondition is not None:
                require_version(precondition, stored.version)
            await read_in_key_order(connection)
            await _refuse_unfinished(connection, stored)
            await connection.execute(SQL["delete"], {"name": name})
            await connection.execute(SQL["close_breaker"], {"group": stored.id})
            by = OperatorAction(operator=None, reason=None, key_id=key_id)
            await connection.execute(*audit_entry("group.delete", name, by))

    async def pause(
        self,
        name: str,
        reason: str,
        *,
        paused: bool,
        key_id: str | None,
        operator: str | None = None,
    ) -> ProducerGroup:
        """Pause or resume the checks of a group; ends always continue. Raises UnknownGroup."""
        async with self._change(name) as connection:
            found = await _row(connection, name)
            stop = {
                "name": name,
                "paused": paused,
                "reason": reason if paused else None,
                "by": operator or key_id if paused else None,
            }
            await connection.execute(SQL["pause"], stop)
            await connection.execute(SQL["close_breaker"], {"group": found["id"]})
            action = "group.pause" if paused else "group.resume"
            by = OperatorAction(operator=operator, reason=reason, key_id=key_id)
            await connection.execute(*audit_entry(action, name, by))
            return read_group(await _row(connection, name))

    async def rotate_secret(
        self, name: str, overlap_seconds: int, key_id: str | None
    ) -> RotatedSecret:
        """Give the group a new signing secret; the old one stays valid for the overlap.

        Raises UnknownGroup.
        """
        secret = new_secret()
        async with self._change(name) as connection:
            await _row(connection, name)
            row = await self._replace(connection, name, secret, overlap_seconds, key_id)
        return RotatedSecret(check_secret=secret, **row)

    async def _replace(
        self, connection: AsyncConnection, name: str, secret: str, overlap: int, key_id: str | None
    ) -> dict[str, Any]:
        asked = {"overlap": overlap, "most": PREVIOUS_SECRETS}
        sealed = {"name": name, "secret": self._ring.seal(secret, name)}
        [row] = await rows_of(connection, SQL["rotate_secret"], asked | sealed)
        by = OperatorAction(operator=None, reason=None, key_id=key_id)
        await connection.execute(*audit_entry("group.rotate_secret", name, by))
        return row

    def _has(self, row: dict[str, Any], secret: str) -> bool:
        """Return whether this is the group's secret; one whose key is lost is another."""
        with suppress(ConfigurationError):
            return self._ring.open(bytes(row["secret"]), row["name"]) == secret
        return False

    @asynccontextmanager
    async def _change(self, name: str) -> AsyncIterator[AsyncConnection]:
        """Open a transaction in which no other changes the group of this name."""
        async with transaction(self._pool) as connection:
            await connection.execute(SQL["lock_name"], {"name": name})
            yield connection


def settings_of(group: ProducerGroup) -> dict[str, Any]:
    """Return what a PUT replaces, as column values."""
    values = {name: getattr(group, name) for name in SETTINGS}
    return values | {
        "on_check_max": group.on_check_max.value,
        "backoff": group.backoff.value,
        "topics": list(group.topics),
    }


async def _refuse_unfinished(connection: AsyncConnection, group: ProducerGroup) -> None:
    """Keep new messages of a group away, and raise GroupInUse if it has unfinished ones.

    Prepares wait meanwhile, so the look has DELETION_SECONDS. Raises DatabaseUnavailable if these
    are not enough because of a backlog.
    """
    await connection.execute(f"SET LOCAL statement_timeout = {DELETION_SECONDS * 1000}")
    await connection.execute(SQL["wait_for_flushes"], {"group": group.id})
    [(in_use,)] = await (await connection.execute(SQL["in_use"], {"group": group.id})).fetchall()
    if in_use:
        raise GroupInUse(group.name)


async def _rows(
    connection: AsyncConnection,
    names: list[str] | None,
    after: str = "",
    limit: int = 1,
    *,
    unasked: bool = False,
) -> list[dict[str, Any]]:
    asked = {"names": names, "after": after, "limit": limit, "unasked": unasked}
    return await rows_of(connection, SQL["page"], asked)


async def _row(connection: AsyncConnection, name: str) -> dict[str, Any]:
    rows = await _rows(connection, [name])
    if not rows:
        raise UnknownGroup(name)
    return rows[0]
