"""The page of a form: a login, a refusal and the address of the form itself lead back there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from starlette.responses import Response
from starlette.routing import compile_path

from api.console.pages.site_map import FORMS, PAGES
from api.console.visit import Visit, asked_address

_PAGES: Final = [compile_path(path)[0] for path in PAGES]
_PARTS: Final = 1 + max(path.count("/") for path in (*PAGES, *FORMS))
"""Most parts of an address: of a longer one no page is sought part by part."""
LABELS: Final = {
    "operator": "Operator",
    "reason": "Reason",
    "decision": "Decision",
    "transaction_id": "A transaction that it knows",
    "expect": "It must be",
}
"""The names that pages give the fields of forms that a person fills in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidField:
    """A field that was refused, and why."""

    name: str
    label: str
    value: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormToCorrect:
    """A refused form: it is shown again with its invalid fields, the others are hidden in it."""

    action: str
    invalid: list[InvalidField]
    kept: list[tuple[str, str]]


def form_to_correct(visit: Visit, problem: Mapping[str, Any]) -> FormToCorrect | None:
    """Return the refused form; None if the problem is not that a person filled it in wrong."""
    errors = {each["pointer"].strip("/"): each["message"] for each in problem.get("errors") or []}
    if visit.request.method != "POST" or not errors or not errors.keys() <= LABELS.keys():
        return None
    invalid = [
        InvalidField(name=name, label=LABELS[name], value=visit.form.get(name, ""), message=message)
        for name, message in errors.items()
    ]
    kept = [(name, value) for name, value in visit.form.multi_items() if name not in errors]
    return FormToCorrect(action=asked_address(visit.request), invalid=invalid, kept=kept)


async def lead_to_page(visit: Visit) -> Response:
    """Answer a browser that asks for the address of a form, as one does that was started again."""
    return visit.go_on(page_above(urlsplit(asked_address(visit.request)), visit.prefix))


def page_of_form(referrer: str, host: str, prefix: str) -> str | None:
    """Return the page that the browser names; None if it is none of this console."""
    try:
        named = urlsplit(referrer)
    except ValueError:
        return None
    if named.netloc != host or not f"{named.path}/".startswith(f"{prefix}/"):
        return None
    return page_above(named, prefix)


def page_above(named: SplitResult, prefix: str) -> str:
    """Return the address of the page, of a form or an answer to one that of the page above it.

    It has the search that the form has in its address; what a page said after an earlier form is
    left out.
    """
    path = "/".join(named.path.removeprefix(prefix).split("/", _PARTS)[:_PARTS])
    while not _is_page(path):
        path = path.rpartition("/")[0]
    query = "&".join(each for each in named.query.split("&") if not each.startswith("done="))
    return f"{prefix}{path or '/'}{'?' if query else ''}{query}"


def _is_page(path: str) -> bool:
    return path not in FORMS and any(each.match(path) for each in _PAGES)
