"""Grafana's own types accept each dashboard: no property is unknown, missing or of another type."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures_npm import install_locked
from tests.fixtures_paths import PROJECT

DASHBOARDS = sorted((PROJECT / "deploy/grafana/dashboards").glob("*.json"))
TYPES = Path(__file__).with_name("grafana_types")
OPTIONS = ("--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022")
COMPILE_SECONDS = 120


def test_the_types_are_those_of_the_release_in_the_stack() -> None:
    compose = (PROJECT / "docker-compose.yml").read_text("utf-8")
    (release,) = re.findall(r"image: grafana/grafana:(\S+)", compose)
    wanted = json.loads((TYPES / "package.json").read_text("utf-8"))["dependencies"]
    assert wanted["@grafana/schema"] == release


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install Grafana's types and TypeScript as locked; return the folder."""
    folder = tmp_path_factory.mktemp("types")
    install_locked(TYPES, folder)
    return folder


def complaints(folder: Path, dashboard: dict[str, Any]) -> list[str]:
    """Return what the compiler says of a dashboard and of each of its panels."""
    lines = ["import type { Dashboard, Panel, RowPanel } from '@grafana/schema';"]
    lines.append(f"const dashboard: Dashboard = {json.dumps(dashboard)};")
    for panel in dashboard["panels"]:
        kind = "RowPanel" if panel["type"] == "row" else "Panel"
        lines.append(f"const panel{panel['id']}: {kind} = {json.dumps(panel)};")
    source = folder / "dashboard.ts"
    source.write_text("\n".join([*lines, "export {};"]), "utf-8")
    command = [str(folder / "node_modules/.bin/tsc"), *OPTIONS, str(source)]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False
    )
    said = done.stdout.splitlines()
    assert bool(said) == (done.returncode != 0), done.stderr
    return said


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_grafanas_types_accept_a_dashboard(types: Path, path: Path) -> None:
    assert complaints(types, json.loads(path.read_text("utf-8"))) == []


def test_grafanas_types_refuse_a_property_that_there_is_not(types: Path) -> None:
    dashboard = json.loads(DASHBOARDS[0].read_text("utf-8"))
    dashboard["panels"][1]["gridPosition"] = dashboard["panels"][1].pop("gridPos")
    assert "gridPosition" in "\n".join(complaints(types, dashboard))
