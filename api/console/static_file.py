"""The files of the pages: style, scripts, icon. They are in the package, not on another host.

A page names each with a hash of its content, so a browser keeps it until it changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from api.console import PREFIX

HTMX_VERSION: Final = "2.0.11"
HTMX_SHA256: Final = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
"""Of `dist/htmx.min.js` in the npm package `htmx.org` (Zero-Clause BSD)."""
NAMES: Final = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    f"htmx-{HTMX_VERSION}.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
FOR_A_YEAR: Final = "public, max-age=31536000, immutable"
HASH_CHARACTERS: Final = 16


@dataclass(frozen=True, slots=True)
class StaticFile:
    """One file: its bytes, and the start of their hash."""

    content: bytes
    version: str


@cache
def static_file(name: str) -> StaticFile:
    """Return a file of NAMES."""
    content = files("api.console").joinpath("static", name).read_bytes()
    return StaticFile(content, sha256(content).hexdigest()[:HASH_CHARACTERS])


def static_url(name: str) -> str:
    """Return the address that changes with the content."""
    return f"{PREFIX}/static/{name}?v={static_file(name).version}"


async def serve_static_file(request: Request) -> Response:
    """Answer with a file; only an address with the present hash may be kept."""
    name = request.path_params["name"]
    if name not in NAMES:
        return Response(status_code=404)
    found = static_file(name)
    kept = request.query_params.get("v") == found.version
    headers = {
        "cache-control": FOR_A_YEAR if kept else "no-cache",
        "x-content-type-options": "nosniff",
    }
    return Response(found.content, headers=headers, media_type=NAMES[name])
