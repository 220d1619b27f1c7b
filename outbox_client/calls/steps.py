"""The steps of a call that need input or output; a driver takes them, on threads or on asyncio."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from outbox_client.calls.protocol import Request
from outbox_client.calls.shared_items import SharedItem

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Exchange:
    """Send ``request`` within ``seconds``; the reply is its ``Answer``."""

    request: Request
    seconds: float


@dataclass(frozen=True, slots=True)
class Share:
    """Send ``item`` within ``seconds``, alone or in a batch; the reply is its own ``Answer``."""

    item: SharedItem
    seconds: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before a retry; the reply is False if the producer was closed meanwhile."""

    seconds: float


Step = Exchange | Share | Pause
Steps = Generator[Step, Any, Result]
"""A call: it yields its steps, gets a reply (or an ``OutboxError``) for each, and returns."""
