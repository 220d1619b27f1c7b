"""The service's wheel holds only what production runs; the crash harness is a wheel of its own."""

from __future__ import annotations

import tomllib
from configparser import ConfigParser
from pathlib import Path
from zipfile import ZipFile

from cli import app
from tests.fixtures_paths import PROJECT
from tests.unit.deploy.fixtures_wheel import build_wheel

HARNESS = "chaos"
CLIENT = "outbox_client"
DEVELOPMENT = {HARNESS, "tests", "benchmarks", "examples"}


def modules_of(wheel: ZipFile) -> set[str]:
    """Return the Python modules of a wheel."""
    return {name for name in wheel.namelist() if name.endswith(".py")}


def test_the_service_wheel_holds_neither_the_harness_nor_an_in_memory_twin(tmp_path: Path) -> None:
    with build_wheel(PROJECT, tmp_path) as wheel:
        names = modules_of(wheel)
        sources = {name: wheel.read(name).decode() for name in names}
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    packages = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {name.partition("/")[0] for name in names} == set(packages)
    assert not DEVELOPMENT & set(packages)
    assert [name for name, text in sources.items() if "class InMemory" in text] == []
    assert [name for name in names if "in_memory" in name] == []


def test_the_client_wheel_holds_every_module_of_the_client(tmp_path: Path) -> None:
    with build_wheel(PROJECT / CLIENT, tmp_path) as wheel:
        modules = modules_of(wheel)
    wanted = {str(path.relative_to(PROJECT)) for path in (PROJECT / CLIENT).rglob("*.py")}
    assert modules == wanted


def test_the_harness_wheel_holds_every_module_and_its_entry_points(tmp_path: Path) -> None:
    with build_wheel(PROJECT / HARNESS, tmp_path) as wheel:
        modules, names = modules_of(wheel), wheel.namelist()
        (listed,) = (each for each in names if each.endswith("entry_points.txt"))
        text = wheel.read(listed).decode()
    wanted = {str(path.relative_to(PROJECT)) for path in (PROJECT / HARNESS).rglob("*.py")}
    assert modules == wanted
    entries = ConfigParser()
    entries.read_string(text)
    assert entries["console_scripts"]["outbox-chaos"] == "chaos.__main__:main"
    assert entries[app.EXTENSIONS]["chaos"] == "chaos.__main__:make_app"
