"""Grafana's dashboards show every metric of the catalogue, and nothing that there is not."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from outbox.telemetry.metrics import CATALOGUE, NAMESPACE
from tests.fixtures_paths import PROJECT

FOLDER = PROJECT / "deploy" / "grafana"
FILES = sorted((FOLDER / "dashboards").glob("*.json"))
PROMTOOL = shutil.which("promtool")
SUFFIX = r"_(?:bucket|count|sum)$"
LABELS = {f"{NAMESPACE}_{metric.name}": set(metric.labels) for metric in CATALOGUE}


def panels() -> list[dict[str, Any]]:
    """Return every panel of every dashboard, without the titles of rows."""
    read = [json.loads(path.read_text("utf-8")) for path in FILES]
    return [each for board in read for each in board["panels"] if each["type"] != "row"]


def targets() -> list[dict[str, str]]:
    return [target for panel in panels() for target in panel["targets"]]


def metrics_in(expr: str) -> set[str]:
    """Return the metrics that an expression names."""
    names = re.findall(rf"\b{NAMESPACE}_\w+", expr)
    return {re.sub(SUFFIX, "", name) for name in names}


def test_the_files_are_written_from_the_panels_of_now() -> None:
    script = runpy.run_path(str(FOLDER / "write_dashboards.py"))
    stored = {path.name: path.read_text("utf-8") for path in FILES}
    assert stored == script["dashboards"]()
    assert stored


def test_dashboards_show_exactly_the_metrics_of_the_catalogue() -> None:
    shown = {name for target in targets() for name in metrics_in(target["expr"])}
    assert shown == set(LABELS)


@pytest.mark.skipif(PROMTOOL is None, reason="promtool (of Prometheus) is not on the PATH")
def test_prometheus_understands_every_expression(tmp_path: Path) -> None:
    plain = [
        target["expr"].replace("$__rate_interval", "5m").replace("$producer_group", ".*")
        for target in targets()
    ]
    rules = [{"record": f"panel:{n}", "expr": expr} for n, expr in enumerate(plain)]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}), "utf-8")
    done = subprocess.run(
        [str(PROMTOOL), "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
