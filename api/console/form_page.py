"""The page of a form, as the browser names it: the login leads back there."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.routing import compile_path

from api.console.pages.site_map import FORMS, PAGES

_PAGES: Final = [compile_path(path)[0] for path in PAGES]
_PARTS: Final = 1 + max(path.count("/") for path in (*PAGES, *FORMS))
"""Most parts of an address: of a longer one no page is sought part by part."""


def page_of_form(referrer: str, host: str, prefix: str) -> str | None:
    """Return the address of the page; None if the browser names none of this console.

    An answer to a form has no page of its own: the page above it is returned, with the search that
    the form has in its address. What a page said after an earlier form is left out.
    """
    try:
        named = urlsplit(referrer)
    except ValueError:
        return None
    if named.netloc != host or not f"{named.path}/".startswith(f"{prefix}/"):
        return None
    path = "/".join(named.path.removeprefix(prefix).split("/", _PARTS)[:_PARTS])
    while not _is_page(path):
        path = path.rpartition("/")[0]
    query = "&".join(each for each in named.query.split("&") if not each.startswith("done="))
    return f"{prefix}{path or '/'}{'?' if query else ''}{query}"


def _is_page(path: str) -> bool:
    return path not in FORMS and any(each.match(path) for each in _PAGES)
