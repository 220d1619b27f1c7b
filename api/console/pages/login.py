"""Log in with an API key, and out."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from api.console import PREFIX
from api.console.session import COOKIE
from api.console.visit import Visit

OPERATOR_MAX: Final = 128


async def show(visit: Visit) -> Response:
    """Show the form; who needs no key, or has a session, is sent on."""
    following = _local(visit.query.get("next"))
    if visit.known:
        return visit.go_on(PREFIX + following)
    return visit.page("login.html", next=following, failed=None, operator="")


async def log_in(visit: Visit) -> Response:
    """Verify the key, and begin a session that goes on at the page first asked for."""
    following = _local(visit.form.get("next"))
    operator = visit.form.get("operator", "").strip()
    failed = None if operator and len(operator) <= OPERATOR_MAX else "Give your name."
    if failed is None:
        session = await visit.log_in(visit.form.get("key", "").strip(), operator)
        if session is not None:
            visit.session = session
            return visit.go_on(PREFIX + following)
        failed = "This key is not valid: never made, expired or revoked."
    return visit.page("login.html", status=401, next=following, failed=failed, operator=operator)


async def log_out(visit: Visit) -> Response:
    """End the session of this browser."""
    visit.session = None
    response = visit.see("/login", done="logged-out")
    response.delete_cookie(COOKIE, path=PREFIX, httponly=True, samesite="lax")
    return response


def _local(asked: str | None) -> str:
    """Return the path below the prefix to go on to; never another host."""
    path = (asked or "").removeprefix(PREFIX)
    foreign = not path.startswith("/") or path.startswith(("//", "/\\", "/login", "/logout"))
    return "/" if foreign else path
