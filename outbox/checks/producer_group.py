"""A producer group: it answers the checks of its messages; its settings and who may change them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, StrEnum
from typing import Literal

from outbox.access import Caller, Scope
from outbox.checks.breaker import BreakerState
from outbox.errors import PreconditionFailed, PreconditionRequired, ScopeMissing


class OnCheckMax(StrEnum):
    """The treatment of a half message whose checks are spent (P31)."""

    PARK = "park"
    ROLLBACK = "rollback"


class Backoff(StrEnum):
    """The growth of the interval between checks."""

    FIXED = "fixed"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerGroup:
    """A producer group and the checks of its undecided messages; durations are in seconds."""

    id: int
    name: str
    check_url: str
    check_interval_seconds: int = 30
    check_max: int = 15
    check_timeout_seconds: int = 5
    transaction_timeout_seconds: int = 6
    on_check_max: OnCheckMax = OnCheckMax.PARK
    backoff: Backoff = Backoff.FIXED
    max_inflight: int = 8
    batch_check: bool = False
    check_payload: bool = False
    topics: tuple[str, ...] = ()
    max_age_seconds: int = 259_200
    paused: bool = False
    pause_reason: str | None = None
    paused_at: datetime | None = None
    paused_by: str | None = None
    breaker: BreakerState = BreakerState.CLOSED
    next_trial_at: datetime | None = None
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """The valid signing secrets, newest first (whsec_…), decrypted; never printed.

    Of a group to be stored: the secret that it shall have, if it is not to be a fresh one.
    """


# -- Changes of a group ----------------------------------------------------------------------------


class AnyVersion(Enum):
    """``If-Match: *``: any stored version."""

    ANY = "*"


Precondition = frozenset[int] | AnyVersion | None
"""The versions that the caller knows; None when the caller gave none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGroup:
    """The group after a PUT; ``secret`` is the fresh one of a group that was created."""

    group: ProducerGroup
    change: Literal["created", "replaced"] | None = None
    """None: it was stored so already."""
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RotatedSecret:
    """The new signing secret, which is returned only here, and when the previous one expires."""

    check_secret: str = field(repr=False)
    previous_expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHealth:
    """The due checks of a group, at most ``max_inflight`` of them in flight; its secret's age.

    The previous secret signs too until it expires.
    """

    due: int
    secret_changed_at: datetime
    previous_secret_expires_at: datetime | None


def require_version(precondition: Precondition, version: int) -> None:
    """Refuse a change that does not name the stored version of the object.

    Raises PreconditionRequired or PreconditionFailed.
    """
    if precondition is None:
        raise PreconditionRequired
    if precondition is not AnyVersion.ANY and version not in precondition:
        raise PreconditionFailed(version)


def require_scopes(caller: Caller, stored: ProducerGroup | None, wanted: ProducerGroup) -> None:
    """Refuse a change that needs more than ``groups:write``. Raises ScopeMissing.

    The topics limit what the group's producers may write, so an administrator sets them. A new
    group has topics too: an empty list allows all of them. Who sends the payload somewhere else
    must be allowed to read it.
    """
    if stored is None:
        _require(caller, Scope.ADMIN, "register a producer group, because it has topics")
    elif set(stored.topics) != set(wanted.topics):
        _require(caller, Scope.ADMIN, "change the topics of a producer group")
    if wanted.check_payload and not _sends_payload_there(stored, wanted):
        _require(caller, Scope.MESSAGES_PAYLOAD, "send the payload with checks to another place")


def _sends_payload_there(stored: ProducerGroup | None, wanted: ProducerGroup) -> bool:
    return stored is not None and stored.check_payload and stored.check_url == wanted.check_url


def _require(caller: Caller, scope: Scope, purpose: str) -> None:
    if not caller.has(scope):
        raise ScopeMissing(scope, purpose)
