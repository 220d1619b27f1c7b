"""Writes Grafana's files in `deploy/grafana/dashboards` from `deploy/grafana/panels.yml`.

Run ``python deploy/grafana/write_dashboards.py`` after a change; a test compares the two, and looks
up each metric and label in the catalogue of metrics.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 3
WIDTH, HEIGHT = 8, 8
"""The size of a panel; Grafana's page is 24 wide."""


def dashboards() -> dict[str, str]:
    """Return the files by name."""
    described = yaml.safe_load((FOLDER / "panels.yml").read_text("utf-8"))
    return {f"{each['uid']}.json": _rendered(each) for each in described}


def _rendered(dashboard: dict[str, Any]) -> str:
    document = {
        "uid": dashboard["uid"],
        "title": dashboard["title"],
        "description": dashboard["description"],
        "tags": ["outbox"],
        "schemaVersion": 39,
        "editable": False,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": _variables(dashboard["variables"])},
        "panels": _panels(dashboard["rows"]),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _variables(queries: dict[str, str]) -> list[dict[str, Any]]:
    source = {"name": "datasource", "label": "source", "type": "datasource", "query": "prometheus"}
    several = {"refresh": 2, "multi": True, "includeAll": True, "allValue": ".*"}
    asked = [
        {"name": name, "type": "query", "datasource": SOURCE, "query": query, **several}
        for name, query in queries.items()
    ]
    return [source, *asked]


def _panels(rows: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the panels, three beside each other below the title of their row."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in rows.items():
        panels.append({**_row(title), "gridPos": _place(1, 3 * WIDTH, 0, y)})
        for number, panel in enumerate(row):
            down, across = divmod(number, COLUMNS)
            at = _place(HEIGHT, WIDTH, across * WIDTH, y + 1 + down * HEIGHT)
            panels.append({"gridPos": at, **_panel(panel)})
        y += 1 + HEIGHT * -(-len(row) // COLUMNS)
    return [{"id": number, **panel} for number, panel in enumerate(panels, 1)]


def _row(title: str) -> dict[str, Any]:
    """Return an open row: its panels follow it, so it holds none itself."""
    return {"type": "row", "title": title, "collapsed": False, "panels": []}


def _place(h: int, w: int, x: int, y: int) -> dict[str, int]:
    return {"h": h, "w": w, "x": x, "y": y}


def _panel(panel: dict[str, Any]) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + place), "datasource": SOURCE, "expr": expr, "legendFormat": legend}
        for place, (legend, expr) in enumerate(panel["queries"].items())
    ]
    return {
        "type": panel.get("kind", "timeseries"),
        "title": panel["title"],
        "description": panel["description"],
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": panel["unit"], "min": 0}, "overrides": []},
        "targets": targets,
    }


if __name__ == "__main__":
    for name, text in dashboards().items():
        (FOLDER / "dashboards" / name).write_text(text, "utf-8")
