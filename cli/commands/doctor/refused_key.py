"""What a refused API key shows: its checksum is keyed with the pepper that made it."""

from __future__ import annotations

from typing import Final

from outbox.postgres.operators.api_key_tokens import ApiKeyTokens

SECTION: Final = "docs/runbooks.md, Secrets that are lost or wrong"
MADE_HERE: Final = (
    "it was made with the OUTBOX_AUTH_PEPPER of this command: so it was revoked, has expired or is"
    " of another database, or the API was started with another pepper: restart the API"
)
NOT_MADE_HERE: Final = (
    "it was not made with the OUTBOX_AUTH_PEPPER of this command: it is mistyped or of another"
    f" installation, or the pepper was replaced, if every key is refused: {SECTION}"
)
UNKNOWN: Final = (
    "if every key is refused, the API has another OUTBOX_AUTH_PEPPER than the one that made them:"
    f" {SECTION}"
)


def refused_key(key: str, pepper: str | None) -> str:
    """Return whether the key or the pepper is wrong, as far as these two can tell. Pure."""
    if pepper is None:
        return UNKNOWN
    return NOT_MADE_HERE if ApiKeyTokens(pepper.encode()).read(key) is None else MADE_HERE
