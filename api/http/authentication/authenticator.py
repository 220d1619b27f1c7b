"""What the guard asks about the caller of a request."""

from __future__ import annotations

from typing import Protocol

from outbox.access import Caller


class Authenticator(Protocol):
    """Finds the caller by the headers of a request."""

    def admit(self, headers: dict[bytes, bytes]) -> None:
        """Refuse what no caller of this mode sends, on every path; raises Problem."""

    async def caller(self, authorization: bytes | None) -> Caller:
        """Return the caller; raises Problem ``unauthenticated`` and DatabaseUnavailable."""
