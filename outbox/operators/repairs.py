"""Repairs: lost and altered messages that are published again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from outbox.messages.message_id import HalfId


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """Whether the message of a finding can be published again.

    ``refused`` is None if it can. Otherwise it is not-open, not-lost (nor altered), not-stored,
    repair-pending, order-risk if a newer message of its key is committed, or digest-differs if the
    stored content is not the prepared content.
    """

    finding_id: str
    half_id: HalfId | None
    message_id: UUID | None
    refused: str | None


class Repairs(Protocol):
    """Plans the repair of lost and altered messages."""

    async def plan(
        self, finding_ids: Sequence[str], groups: frozenset[int] | None, *, accept_order: bool
    ) -> Sequence[Repair]:
        """Judge each known finding of these groups, by finding id. Raises DatabaseUnavailable."""
