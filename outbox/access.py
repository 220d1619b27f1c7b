"""Access control: scopes, and the API keys that have them. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

ALL_GROUPS: Final = "*"
"""Stands for every group in a key's ``producer_groups``."""
KEY_GROUP: Final = r"(\*|[A-Za-z0-9][A-Za-z0-9._-]{0,127})"
"""What a key may name: a producer group, registered or not, or all of them."""
LONGEST_KEY_NAME: Final = 128
MOST_KEY_GROUPS: Final = 1000


class Scope(StrEnum):
    """A permission of a key; ``admin`` includes all of them."""

    MESSAGES_WRITE = "messages:write"
    MESSAGES_END = "messages:end"
    MESSAGES_READ = "messages:read"
    MESSAGES_PAYLOAD = "messages:payload"
    GROUPS_READ = "groups:read"
    GROUPS_WRITE = "groups:write"
    OPS_FORCE = "ops:force"
    REPORTS_READ = "reports:read"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewApiKey:
    """A key to create; with ``expires_at`` None it never expires.

    Raises ValueError for a name or a group that no key may have, whoever creates it.
    """

    name: str
    producer_groups: tuple[str, ...]
    scopes: tuple[Scope, ...]
    expires_at: datetime | None = None

    def __post_init__(self) -> None:
        """Judge the name and the groups."""
        if not 1 <= len(self.name) <= LONGEST_KEY_NAME or not _is_text(self.name):
            raise ValueError(f"the name of a key is a text of 1 to {LONGEST_KEY_NAME} characters")
        if not 1 <= len(self.producer_groups) <= MOST_KEY_GROUPS:
            raise ValueError(f"a key has 1 to {MOST_KEY_GROUPS} producer groups")
        for group in self.producer_groups:
            if re.fullmatch(KEY_GROUP, group) is None:
                raise ValueError(f"{group!r} is no name of a producer group")


def _is_text(text: str) -> bool:
    """Return whether a database can store a text: no NUL, and no half of a character."""
    return "\x00" not in text and not any("\ud800" <= each <= "\udfff" for each in text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A stored API key, without its secret."""

    key_id: str
    name: str
    producer_groups: tuple[str, ...]
    scopes: tuple[Scope, ...]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    """To the minute, as is ``last_refused_at``."""
    last_refused_at: datetime | None = None
    """When a request with this key came after its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller: its key, its scopes, and the groups it is bound to (None: every group)."""

    key_id: str | None
    scopes: frozenset[Scope]
    groups: frozenset[str] | None
    root_key_id: str | None = None
    """The key of some groups from which its key descends: they share limits. None: none."""
    root_groups: frozenset[str] = frozenset()

    @property
    def tenant(self) -> Hashable:
        """Who shares what the process has with this caller: keys of the same groups, or one key.

        A key that descends from another one is of its tenant, whatever groups it has left.
        """
        return self.key_id if self.groups is None else self.root_groups or self.groups

    @property
    def rated_key(self) -> str | None:
        """The key whose rates this caller spends: its own, or that from which it descends."""
        return self.root_key_id or self.key_id

    def has(self, scope: Scope) -> bool:
        """Return whether the caller's scopes include this one."""
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def sees(self, producer_group: str) -> bool:
        """Return whether the caller may see this group; other groups count as missing (P18)."""
        return self.groups is None or producer_group in self.groups

    def covers(self, groups: Collection[str], scopes: Collection[Scope]) -> bool:
        """Return whether this caller has all these groups and scopes: keys never grow."""
        own_groups = self.groups is None or self.groups.issuperset(groups)
        return own_groups and all(self.has(scope) for scope in scopes)


NOBODY: Final = Caller(key_id=None, scopes=frozenset(), groups=frozenset())
"""The caller of every public path, whatever the request claims."""
ANYBODY: Final = Caller(key_id=None, scopes=frozenset({Scope.ADMIN}), groups=None)
"""The caller of every request under ``AUTH_MODE=dev-insecure``, which listens on loopback only."""
