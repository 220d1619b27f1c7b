"""``/docs``: the contract as one page without scripts or external files."""

from __future__ import annotations

from html import escape
from typing import Any, Final

_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "code{font-family:ui-monospace,monospace}h2{border-top:1px solid #8886;padding-top:1rem}"
    "dt{margin-top:.8rem}:root{color-scheme:light dark}"
)


def docs_page(document: dict[str, Any]) -> str:
    """Return the OpenAPI document as a readable page, grouped by tag."""
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = (operation.get("tags") or ["other"])[0]
            by_tag.setdefault(tag, []).append(_entry(method, path, operation))
    info = document["info"]
    sections = "".join(
        f"<h2>{escape(tag)}</h2><dl>{''.join(entries)}</dl>" for tag, entries in by_tag.items()
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(info["title"])}'
        f"</title><style>{_STYLE}</style><h1>{escape(info['title'])}</h1>"
        f"<p>{escape(info['description'])}</p>"
        f'<p>The whole contract: <a href="/openapi.json"><code>/openapi.json</code></a></p>'
        f"{sections}</html>"
    )


def _entry(method: str, path: str, operation: dict[str, Any]) -> str:
    text = operation.get("description") or operation.get("summary") or ""
    return f"<dt><code>{method.upper()} {escape(path)}</code></dt><dd>{escape(text)}</dd>"
