"""Lost and altered messages that are published again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from outbox.messages.message_id import HalfId


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What publishing the message of a finding again would meet.

    ``refused`` is None when nothing stands against it: not-open, not-lost (nor altered),
    not-stored, repair-pending, order-risk when a newer message of its key is committed, or
    digest-differs when what is stored is not what was prepared.
    """

    finding_id: str
    half_id: HalfId | None
    message_id: UUID | None
    refused: str | None


class Repairs(Protocol):
    """Plans how lost and altered messages are published again."""

    async def plan(
        self, finding_ids: Sequence[str], groups: frozenset[int] | None, *, accept_order: bool
    ) -> Sequence[Repair]:
        """Judge each known finding of these groups, by finding id. Raises DatabaseUnavailable."""
