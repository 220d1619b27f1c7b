"""The session of a browser: a sealed cookie, so the browser keeps a key that it cannot read.

Nothing is stored here. Every process with the same pepper opens the cookie, and the key in it is
verified for each request, so a revoked key ends its sessions.
"""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Final

import msgspec
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from outbox.clock import Clock

SKEW_SECONDS: Final = 5 * 60
"""How far the clocks of two API hosts may differ: each opens what the other has sealed."""
IDLE_SECONDS: Final = 30 * 60
"""A session ends if no page is loaded for this time; a page's own refresh does not count."""
LONGEST_SECONDS: Final = 8 * 3600
COOKIE: Final = "outbox_console"
COOKIE_MAX_CHARACTERS: Final = 2000
_PURPOSE: Final = b"outbox console session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a browser's cookie holds; ``token`` is None before the login, and without keys."""

    token: str | None = field(repr=False)
    operator: str
    csrf: str = field(repr=False)
    """Each form of the session has it."""
    begun_at: int
    """Seconds since 1970."""


class SessionSeal:
    """Seals and opens sessions with a key derived from ``secret``."""

    def __init__(self, secret: bytes, clock: Clock) -> None:
        derived = HKDF(SHA256(), 32, salt=None, info=_PURPOSE).derive(secret)
        self._fernet = Fernet(urlsafe_b64encode(derived))
        self._clock = clock

    def begin(self, token: str | None, operator: str) -> Session:
        """Return a new session."""
        csrf = secrets.token_urlsafe(24)
        return Session(token=token, operator=operator, csrf=csrf, begun_at=self._now())

    def seal(self, session: Session) -> str:
        """Return the text of the cookie."""
        return self._fernet.encrypt_at_time(msgspec.json.encode(session), self._now()).decode()

    def open(self, text: str | None) -> Session | None:
        """Return the session; None if it is missing, not ours, changed or over."""
        if not text or len(text) > COOKIE_MAX_CHARACTERS or not text.isascii():
            return None
        now = self._now()
        try:
            content = self._fernet.decrypt(text.encode())
        except InvalidToken:
            return None
        session = msgspec.json.decode(content, type=Session)
        idle = now - self._fernet.extract_timestamp(text.encode())
        fits = -SKEW_SECONDS <= idle <= IDLE_SECONDS
        return session if fits and now - session.begun_at <= LONGEST_SECONDS else None

    def _now(self) -> int:
        return int(self._clock.now().timestamp())


def sealed_session(header: bytes) -> str | None:
    """Return our cookie; None also if there are two: another host of the domain may have set one.

    The library's parser needs half a second for a hostile header, and our values have no quotes.
    """
    pairs = (pair.strip().partition(b"=") for pair in header.split(b";"))
    found = [value for name, _, value in pairs if name == COOKIE.encode()]
    return found[0].decode("latin-1") if len(found) == 1 else None
