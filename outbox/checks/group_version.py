"""How a producer group is changed: preconditions, what was stored, new secrets. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from outbox.checks.producer_group import ProducerGroup
from outbox.errors import PreconditionFailed, PreconditionRequired


class AnyVersion(Enum):
    """``If-Match: *``: whatever version stands."""

    ANY = "*"


Precondition = int | AnyVersion | None
"""The version that the caller had read; None when the caller named none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGroup:
    """The group as it stands after a PUT; ``secret`` is set once, when it was created."""

    group: ProducerGroup
    created: bool
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSecret:
    """A fresh signing secret and when the previous one stops being used."""

    secret: str = field(repr=False)
    previous_expires_at: datetime


def judge(precondition: Precondition, version: int) -> None:
    """Refuse a change that does not name the standing version of the object."""
    if precondition is None:
        raise PreconditionRequired
    if precondition is not AnyVersion.ANY and precondition != version:
        raise PreconditionFailed(version)
