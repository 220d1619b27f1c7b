"""The service's wheel holds only what production runs; the crash harness is a wheel of its own."""

from __future__ import annotations

import tomllib
from pathlib import Path
from zipfile import ZipFile

from tests.fixtures_paths import PROJECT
from tests.unit.deploy.fixtures_wheel import build_wheel

HARNESS = "chaos"
CLIENT = "outbox_client"
DEVELOPMENT = {HARNESS, "tests", "benchmarks", "examples"}


def modules_of(wheel: ZipFile) -> set[str]:
    """Return the Python modules of a wheel."""
    return {name for name in wheel.namelist() if name.endswith(".py")}


def test_the_service_wheel_holds_nothing_of_development(tmp_path: Path) -> None:
    with build_wheel(PROJECT, tmp_path) as wheel:
        names = modules_of(wheel)
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    packages = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {name.partition("/")[0] for name in names} == set(packages)
    assert not DEVELOPMENT & set(packages)


def test_the_client_wheel_holds_every_module_of_the_client(tmp_path: Path) -> None:
    with build_wheel(PROJECT / CLIENT, tmp_path) as wheel:
        modules = modules_of(wheel)
    wanted = {str(path.relative_to(PROJECT)) for path in (PROJECT / CLIENT).rglob("*.py")}
    assert modules == wanted
