"""The files of the pages: style, scripts, icon. They are in the package, not on another host.

A page names each with a hash of its content, so a browser keeps it until it changes.
"""

from __future__ import annotations

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


@cache
def file_content(name: str) -> bytes:
    """Return a file of NAMES."""
    return files("api.console").joinpath("static", name).read_bytes()


@cache
def static_url(name: str) -> str:
    """Return the address that changes with the content."""
    version = sha256(file_content(name)).hexdigest()[:HASH_CHARACTERS]
    return f"{PREFIX}/static/{name}?v={version}"


async def serve_static_file(request: Request) -> Response:
    """Answer with a file; only an address with the present hash may be kept."""
    name = request.path_params["name"]
    if name not in NAMES:
        return Response(status_code=404)
    kept = static_url(name).endswith(f"?{request.url.query}")
    headers = {
        "cache-control": FOR_A_YEAR if kept else "no-cache",
        "x-content-type-options": "nosniff",
    }
    return Response(file_content(name), headers=headers, media_type=NAMES[name])
