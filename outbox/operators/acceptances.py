"""Findings that an operator accepts for a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from outbox.operators.bulk_actions import BulkAction
from outbox.operators.message_view import OperatorAction


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Whether a finding can be accepted: ``refused`` is None, not-open, or not-acceptable.

    An unread part of the plan cannot be accepted: a run that did not read it is not clean.
    """

    finding_id: str
    refused: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceOrder:
    """The end of an acceptance, who accepts and why; ``groups`` as in BulkOrder."""

    until: datetime
    groups: frozenset[int] | None
    action: OperatorAction


class Acceptances(Protocol):
    """Findings that operators accept. Methods raise DatabaseUnavailable."""

    async def plan(
        self, finding_ids: Sequence[str], groups: frozenset[int] | None, until: datetime
    ) -> Sequence[Acceptance]:
        """Judge each known finding of these groups, by finding id. Raises TimePast."""

    async def accept(self, finding_ids: Sequence[str], order: AcceptanceOrder) -> BulkAction:
        """Accept the findings that still can be, each audited, until a time in the future."""
