"""``/docs``: the contract as one page without scripts or external files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from jinja2 import Environment

_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{{ info.title }}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; overflow-wrap: anywhere }
pre { background: #8882; padding: .7rem; white-space: pre-wrap }
h2 { border-top: 1px solid #8886; padding-top: 1rem }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 }
th, td { text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0 }
th { font-weight: normal; white-space: nowrap }
tr { border-bottom: 1px solid #8883 }
summary { cursor: pointer }
:root { color-scheme: light dark }
</style>
{% set words = [
  'minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'pattern', 'default'
] %}
{% set values = {
  'integer': 1, 'number': 1.5, 'boolean': true, 'date-time': '2026-09-21T14:13:26Z',
  'uuid': '00000000-2a3f-8001-8e10-9a546f2b7c1d', 'check_url': 'https://billing.example.com/check',
  'producer_group': 'billing', 'producer_groups': 'billing', 'topic': 'invoices.issued',
  'topics': 'invoices.*', 'finding_id': 'a1b2c3', 'operator': 'maria',
} %}
{# A value with what its schema requires, as JSON: by the member's name, its format or its type. #}
{% macro value(schema, name) -%}
{% if schema['$ref'] %}{{ value(schemas[schema['$ref'].split('/')[-1]], name) }}
{%- elif schema.anyOf or schema.oneOf %}{{ value((schema.anyOf or schema.oneOf)[0], name) }}
{%- elif schema.type == 'object' -%}
{ {% for each in schema.required or () %}{{ ', ' if not loop.first }}{{ each | tojson }}: \
{{ value(schema.properties[each], each) }}{% endfor %} }
{%- elif schema.type == 'array' %}[{{ value(schema['items'], name) }}]
{%- elif schema.const %}{{ schema.const | tojson }}
{%- elif schema.default is defined %}{{ schema.default | tojson }}
{%- elif schema.enum %}{{ schema.enum[0] | tojson }}
{%- else %}{{ values.get(name, values.get(schema.format, values.get(schema.type, name))) | tojson }}
{%- endif %}
{%- endmacro %}
{% macro type(schema) -%}
{% if schema['$ref'] %}{% set name = schema['$ref'].split('/')[-1] -%}
<a href="#{{ name }}">{{ name }}</a>
{%- elif schema.anyOf or schema.oneOf -%}
{% for each in schema.anyOf or schema.oneOf %}{{ ' or ' if not loop.first }}{{ type(each) }}\
{% endfor %}
{%- elif schema.enum %}{{ schema.enum | join(', ') }}
{%- elif schema.const %}{{ schema.const }}
{%- elif schema.type == 'array' %}list of {{ type(schema['items']) }}
{%- else %}{{ schema.type or 'any value' }}{{ ' ' ~ schema.format if schema.format }}
{%- endif %}
{%- for word in words if schema[word] is defined %}, {{ word }} \
<code>{{ schema[word] | tojson }}</code>{% endfor %}
{%- endmacro %}
{% macro fields(schema) -%}
<table>
{% for name, each in (schema.properties or {}).items() -%}
<tr><th><code>{{ name }}</code>{{ ' *' if name in (schema.required or ()) }}</th>\
<td>{{ type(each) }}</td><td>{{ each.description }}</td></tr>
{% endfor -%}
</table>
{%- endmacro %}
{% macro content(kinds) -%}
{% for kind, each in kinds.items() %}
<p>{{ kind }}{% if each.schema %}: {{ type(each.schema) }}{% endif %}</p>
{% if each.schema and each.schema['$ref'] %}
{{ fields(schemas[each.schema['$ref'].split('/')[-1]]) }}
{% endif %}
{% if each.schema and 'json' in kind %}
<pre>{{ (each.example | tojson if each.example else value(each.schema, '')) | pretty }}</pre>
{% endif %}
{% endfor %}
{%- endmacro %}
<h1>{{ info.title }}</h1>
<p>{{ info.description }}</p>
<p>The whole contract: <a href="/openapi.json"><code>/openapi.json</code></a>.
* is required. Examples show the form; their values are made up.</p>
{% for tag, alike in operations | groupby('tags') %}
<h2>{{ tag | join(', ') }}</h2>
{% for each in alike %}
<h3 id="{{ each.operationId }}"><code>{{ each.method | upper }} {{ each.path }}</code></h3>
<p>{{ each.description or each.summary }}</p>
{% if each.parameters %}
<table>
{% for one in each.parameters -%}
<tr><th><code>{{ one.name }}</code>{{ ' *' if one.required }}</th><td>{{ one['in'] }}</td>\
<td>{{ type(one.schema) }}</td><td>{{ one.description }}</td></tr>
{% endfor -%}
</table>
{% endif %}
{% if each.requestBody %}
<details><summary>Body</summary>{{ content(each.requestBody.content) }}</details>
{% endif %}
{% for status, answer in each.responses.items() if status != 'default' %}
<details><summary>{{ status }}: {{ answer.description }}</summary>
{% for name in answer.headers or () %}
<p>Header <code>{{ name }}</code>: {{ headers[name].description }}</p>
{% endfor %}
{{ content(answer.content or {}) }}
</details>
{% endfor %}
{% if each.responses.default %}
<p>{{ each.responses.default.description }} (<a href="#ProblemDocument">ProblemDocument</a>)</p>
{% endif %}
{% endfor %}
{% endfor %}
<h2>Types</h2>
{% for name, each in schemas | dictsort %}
<h3 id="{{ name }}">{{ name }}</h3>
<p>{{ each.description }}</p>
{% if each.properties %}{{ fields(each) }}{% else %}<p>{{ type(each) }}</p>{% endif %}
{% endfor %}
</html>
"""


def docs_page(document: dict[str, Any]) -> str:
    """Return the OpenAPI document as a readable page, grouped by tag."""
    pages = Environment(autoescape=True)
    pages.filters["pretty"] = lambda text: msgspec.json.format(str(text), indent=2)
    page: str = pages.from_string(_PAGE).render(
        document, operations=[*_operations(document["paths"])], **document["components"]
    )
    return page


def _operations(paths: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each operation of paths, and what it calls back."""
    for path, operations in paths.items():
        for method, operation in operations.items():
            yield {"path": path, "method": method, **operation}
            for called in operation.get("callbacks", {}).values():
                yield from _operations(called)
