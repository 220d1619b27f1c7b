"""One request of a browser, as the pages see it: who visits, the API, the form, the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment
from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from api.console import PREFIX
from api.console.in_process_api import InProcessApi, Query
from api.console.page_renderer import HEADERS
from api.console.session import Session
from outbox.access import NOBODY, Caller, Scope

LogIn = Callable[[str, str], Awaitable[Session | None]]
"""Takes an API key and the operator's name; returns None if the key is not valid."""

FORM_FIELDS_MAX: Final = 2000
SEE_OTHER: Final = 303
NOTICES: Final = {
    "rechecked": "The check is due now. Reload to see its result.",
    "ended": "The decision is stored.",
    "paused": "Checks of the group are paused. Prepares, ends and publishing go on.",
    "resumed": "Checks of the group go on.",
    "breaker-closed": "The breaker is closed: what is due is asked at once.",
    "released": "The relay tries the record again within a second. Reload to see its result.",
    "dropped": "The record is given up: it is never published, and what waited for it goes on.",
    "revoked": "The key is revoked; it stops working within 5 seconds.",
    "cancelled": "Nothing more is done of this action.",
    "action-over": "The action had ended before, and nothing was changed.",
    "logged-out": "You are logged out.",
    "session-over": "Your session is over, and nothing was done: what you typed or selected is"
    " lost. Log in, then try again.",
}
"""What a page says after a form; an address names one of them, never a text."""


@dataclass(slots=True, kw_only=True)
class Visit:
    """One request; ``form`` holds the fields of a POST whose token was compared."""

    request: Request
    request_id: str
    caller: Caller
    session: Session | None
    """The session that the answer continues; None ends it."""
    api: InProcessApi
    templates: Environment
    log_in: LogIn
    form: ImmutableMultiDict[str, str] = field(default_factory=ImmutableMultiDict, repr=False)

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters of the address."""
        return self.request.query_params

    @property
    def at(self) -> dict[str, str]:
        """The parts of the path that name something."""
        return self.request.path_params

    def given(self, names: Iterable[str]) -> dict[str, str]:
        """Return the parameters of these names that were filled in."""
        asked = {name: self.query.get(name, "").strip() for name in names}
        return {name: text for name, text in asked.items() if text}

    @property
    def known(self) -> bool:
        """True if the visitor may see pages."""
        return self.caller is not NOBODY

    @property
    def is_refresh(self) -> bool:
        """True if the page's script refreshes its live part."""
        return self.request.headers.get("hx-target") == "live"

    @property
    def operator(self) -> str:
        """The name that the visitor gave at the login, for the audit log."""
        return self.session.operator if self.session else ""

    def can(self, scope: Scope) -> bool:
        """Return whether the visitor's key has a scope."""
        return self.caller.has(scope)

    @property
    def is_bound(self) -> bool:
        """True if the visitor's key is bound to groups."""
        return self.caller.groups is not None

    @property
    def sees_all(self) -> bool:
        """True if the visitor sees what all groups share."""
        return self.can(Scope.REPORTS_READ) and not self.is_bound

    def why_not(self, scope: Scope) -> str | None:
        """Return why a control is disabled; None if it is not."""
        return None if self.can(scope) else f"Your key needs the scope {scope}."

    def address(self, path: str, **query: str | None) -> str:
        """Return an address of the console."""
        given = {name: value for name, value in query.items() if value is not None}
        asked = "?" + urlencode(given) if given else ""
        return f"{PREFIX}{quote(path, safe='/')}{asked}"

    async def read(self, allowed: bool, route: str, query: Query | None = None) -> Any:
        """Return the JSON of a GET; None if the visitor may not see it."""
        return await self.api.get(route, query) if allowed else None

    async def list(self, route: str, path: str, *, limit: int, **given: str) -> dict[str, Any]:
        """Return the asked page of a route's list; ``following`` is the address of the next."""
        cursor = self.query.get("cursor")
        asked: Query = {"limit": limit, **given, **({"cursor": cursor} if cursor else {})}
        page: dict[str, Any] = await self.api.get(route, asked)
        after = page["next_cursor"]
        return page | {"following": after and self.address(path, **given, cursor=after)}

    @property
    def filled_in(self) -> dict[str, str]:
        """The fields of a form, with the operator for the audit log."""
        fields = {name: text for name, text in self.form.items() if name != "csrf"}
        return {"operator": self.operator} | fields

    def see(self, path: str, **query: str | None) -> Response:
        """Return the answer to a form: another page, which a reload does not send again."""
        return self.go_on(self.address(path, **query))

    def go_on(self, address: str) -> Response:
        """Redirect to an address of the console, with its query."""
        return RedirectResponse(address, SEE_OTHER, {"cache-control": "no-store"})

    def reload(self) -> Response:
        """Answer a refresh: the browser loads the whole page again."""
        return Response(status_code=204, headers={"hx-refresh": "true"})

    def page(self, template: str, *, status: int = 200, **facts: Any) -> Response:
        """Return a page."""
        shared = {
            "visit": self,
            "notice": NOTICES.get(self.query.get("done", "")),
            "calls": list(dict.fromkeys(self.api.calls)),
            "here": asked_address(self.request),
            "Scope": Scope,
        }
        text = self.templates.get_template(template).render(shared | facts)
        return Response(text, status, HEADERS)


def asked_address(request: Request) -> str:
    """Return the path and query of a request, as the browser wrote them."""
    raw = request.scope.get("raw_path") or request.scope["path"].encode()
    query = request.scope["query_string"]
    return str((raw.partition(b"?")[0] + (b"?" + query if query else b"")).decode("latin-1"))


def read_form(body: bytes) -> ImmutableMultiDict[str, str]:
    """Return the fields of a form. Raises ValueError if they are too many or not UTF-8."""
    given = parse_qsl(
        body.decode("ascii"),
        keep_blank_values=True,
        errors="strict",
        max_num_fields=FORM_FIELDS_MAX,
    )
    return ImmutableMultiDict([(name, value) for name, value in given if value != ""])
