"""One health check, its result, and the way on. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pydantic.json_schema import SkipJsonSchema

HEARTBEAT_SECONDS: Final = 5
"""The time between two heartbeats of a task of a checker."""


class HealthStatus(StrEnum):
    """The result of one health check."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    """A check of the installation; ``command`` is what to run next, if one command helps.

    The API leaves a missing one out.
    """

    check: str
    verdict: HealthStatus
    detail: str
    command: str | SkipJsonSchema[None] = None


def health_check(
    check: str,
    good: bool,
    detail: str,
    otherwise: HealthStatus = HealthStatus.FAILED,
    command: str | None = None,
) -> HealthCheck:
    """Return a check that is either good or what ``otherwise`` says, with its ``command``."""
    verdict = HealthStatus.OK if good else otherwise
    return HealthCheck(
        check=check, verdict=verdict, detail=detail, command=None if good else command
    )


def failed(checks: Iterable[HealthCheck]) -> list[HealthCheck]:
    """Return the checks that failed."""
    return [each for each in checks if each.verdict is HealthStatus.FAILED]
