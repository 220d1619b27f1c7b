"""``/docs``: the contract as one page without scripts or external files."""

from __future__ import annotations

from typing import Any, Final

from jinja2 import Template

_PAGE: Final = Template(
    """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{{ info.title }}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
code { font-family: ui-monospace, monospace }
h2 { border-top: 1px solid #8886; padding-top: 1rem }
dt { margin-top: .8rem }
:root { color-scheme: light dark }
</style>
<h1>{{ info.title }}</h1>
<p>{{ info.description }}</p>
<p>The whole contract: <a href="/openapi.json"><code>/openapi.json</code></a></p>
{% for tag, alike in operations | groupby("tags") %}
<h2>{{ tag | join(", ") }}</h2>
<dl>
{% for each in alike %}
<dt><code>{{ each.method | upper }} {{ each.path }}</code></dt>
<dd>{{ each.description or each.summary }}</dd>
{% endfor %}
</dl>
{% endfor %}
</html>
""",
    autoescape=True,
)


def docs_page(document: dict[str, Any]) -> str:
    """Return the OpenAPI document as a readable page, grouped by tag."""
    operations = [
        {"path": path, "method": method, **operation}
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    page: str = _PAGE.render(info=document["info"], operations=operations)
    return page
