"""A change of a producer group: its precondition, the stored result, a new secret. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from outbox.checks.producer_group import ProducerGroup
from outbox.errors import PreconditionFailed, PreconditionRequired


class AnyVersion(Enum):
    """``If-Match: *``: any stored version."""

    ANY = "*"


Precondition = int | AnyVersion | None
"""The version that the caller has read; None when the caller gave none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGroup:
    """The group after a PUT; ``secret`` is set only when it was created."""

    group: ProducerGroup
    created: bool
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSecret:
    """A new signing secret, and the time when the previous one expires."""

    secret: str = field(repr=False)
    previous_expires_at: datetime


def require_version(precondition: Precondition, version: int) -> None:
    """Refuse a change that does not name the stored version of the object.

    Raises PreconditionRequired or PreconditionFailed.
    """
    if precondition is None:
        raise PreconditionRequired
    if precondition is not AnyVersion.ANY and precondition != version:
        raise PreconditionFailed(version)
