"""The service's wheel holds only what production runs; the crash harness is a wheel of its own."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from configparser import ConfigParser
from pathlib import Path
from zipfile import ZipFile

import pytest
import typer

from cli import app
from tests.fixtures_paths import PROJECT

HARNESS = "chaos"
DEVELOPMENT = {HARNESS, "tests", "benchmarks", "examples"}


def build_wheel(project: Path, folder: Path) -> ZipFile:
    """Build a wheel without the network and open it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return ZipFile(wheel)


def modules_of(wheel: ZipFile) -> set[str]:
    """Return the Python modules of a wheel."""
    return {name for name in wheel.namelist() if name.endswith(".py")}


def command_names() -> set[str]:
    """Return the commands of `outbox`."""
    return set(typer.main.get_command(app.make_app()).commands)  # type: ignore[attr-defined]


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


def test_the_service_wheel_holds_every_template_and_file_of_the_console(tmp_path: Path) -> None:
    with build_wheel(PROJECT, tmp_path) as wheel:
        names = set(wheel.namelist())
    console = PROJECT / "api" / "console"
    wanted = {
        str(path.relative_to(PROJECT))
        for folder in ("templates", "static")
        for path in (console / folder).iterdir()
    }
    assert wanted
    assert wanted <= names


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


def test_the_command_has_a_chaos_group_where_the_harness_is_installed() -> None:
    assert HARNESS in command_names()


def test_the_command_has_no_chaos_group_without_the_harness(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(app, "entry_points", lambda **_: ())
    assert HARNESS not in command_names()
