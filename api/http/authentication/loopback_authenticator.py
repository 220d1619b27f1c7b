"""AUTH_MODE=dev-insecure: every caller on this machine has every scope, except a web page.

A browser on this machine runs the pages of strangers. They can send requests to loopback, and with
a name that changes its address they could read the answers. So only loopback names are served, and
nothing that a browser marks as sent by another site.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from api.http.problems import Problem
from outbox.access import ANYBODY, Caller

LOOPBACK_HOST: Final = re.compile(
    rb"(localhost|127(?:\.\d{1,3}){3}|\[::1\])(:\d{1,5})?", re.IGNORECASE
)
"""What a browser on this machine sends in Host."""
_OTHER_SITES: Final = frozenset({b"cross-site", b"same-site"})


class LoopbackAuthenticator:
    """Answers programs on this machine, not the pages of other sites."""

    def admit(self, headers: dict[bytes, bytes]) -> None:
        """Refuse a name that is not loopback, and a request of another site's page."""
        host = headers.get(b"host", b"")
        if not LOOPBACK_HOST.fullmatch(host):
            raise _refused("dev-insecure serves only loopback names in Host, such as localhost")
        origin = headers.get(b"origin")
        if origin is not None and origin.lower() != b"http://" + host.lower():
            raise _refused("dev-insecure serves no page of another origin")
        if headers.get(b"sec-fetch-site", b"").lower() in _OTHER_SITES:
            raise _refused("dev-insecure serves no page of another site")

    async def caller(self, authorization: bytes | None) -> Caller:
        """Return the one caller of this mode; the header is ignored."""
        return ANYBODY

    def forget(self, key_id: str) -> None:
        """Do nothing: no key is remembered."""


def is_loopback(host: str) -> bool:
    """Return True for a bind address that only this machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refused(detail: str) -> Problem:
    return Problem(slug="csrf-refused", detail=detail)
