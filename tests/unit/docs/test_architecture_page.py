"""docs/architecture.md draws the imports as they are and names every folder, floor and test."""

from __future__ import annotations

import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from tests.fixtures_paths import PROJECT
from tests.fixtures_source_tree import (
    PACKAGES,
    door_imports,
    doors,
    import_graph,
    imported_by,
)

PAGE = (PROJECT / "docs" / "architecture.md").read_text("utf-8")
(DRAWING,) = re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL)
BOXES = dict(re.findall(r'(\w+)\["([\w/]+)"\]', DRAWING))
ARROWS = re.findall(r'(\w+)(?:\["[\w/]+"\])? --> (\w+)', DRAWING)
PACKAGE_ROWS = re.findall(r"^\| `(\w+)` \| \D.* \| (.*) \| (.*) \|$", PAGE, re.MULTILINE)
FLOOR_ROWS = re.findall(r"^\| `(\w+)` \| (\d) \| (.*) \|$", PAGE, re.MULTILINE)
LAYERED = ["outbox", "api", "checker", "spark", "cli", "chaos"]


def names(cell: str) -> list[str]:
    """Return the names in backticks of a table's cell."""
    return re.findall(r"`([\w/]+)`", cell)


def folder_imports(folder: str) -> set[str]:
    """Return the modules that the modules of a folder import."""
    package = folder.replace("/", ".")
    inside = (each for each in import_graph().modules if f"{each}.".startswith(f"{package}."))
    return {target for module in inside for target in imported_by(module)}


@pytest.mark.parametrize("folder", BOXES.values())
def test_a_box_is_a_folder(folder: str) -> None:
    assert (PROJECT / folder / "__init__.py").is_file()


@pytest.mark.parametrize(("source", "target"), ARROWS)
def test_a_solid_arrow_is_an_import(source: str, target: str) -> None:
    wanted = BOXES[target].replace("/", ".") + "."
    assert any(f"{module}.".startswith(wanted) for module in folder_imports(BOXES[source]))


def test_every_package_has_a_row() -> None:
    assert sorted(package for package, _, _ in PACKAGE_ROWS) == sorted(PACKAGES)


@pytest.mark.parametrize(("package", "allowed", "tests"), PACKAGE_ROWS)
def test_a_package_imports_what_its_row_allows_and_has_its_tests(
    package: str, allowed: str, tests: str
) -> None:
    imported = {module.partition(".")[0] for module in folder_imports(package)}
    assert imported - {package} <= set(names(allowed))
    assert all((PROJECT / folder).is_dir() for folder in names(tests))


@pytest.mark.parametrize("package", LAYERED)
def test_a_door_is_on_one_floor_and_imports_only_lower_floors(package: str) -> None:
    rows = [(int(floor), names(cell)) for name, floor, cell in FLOOR_ROWS if name == package]
    floor_of = {door: floor for floor, listed in rows for door in listed}
    assert sorted(floor_of) == sorted(door for _, listed in rows for door in listed)
    assert set(floor_of) == doors(Path(package))
    for door, targets in door_imports(Path(package)).items():
        assert all(floor_of[target] < floor_of[door] for target in targets), door


def test_the_floors_of_the_library_agree_with_its_import_contract() -> None:
    contracts = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (
        each["layers"] for each in contracts["contracts"] if each.get("containers") == ["outbox"]
    )
    rows = [(int(floor), names(cell)) for name, floor, cell in FLOOR_ROWS if name == "outbox"]
    floor_of = {door: floor for floor, listed in rows for door in listed}
    floors = [[floor_of[door] for door in layer.split(" | ")] for layer in layers]
    assert {door for layer in layers for door in layer.split(" | ")} == set(floor_of)
    assert all(min(upper) >= max(lower) for upper, lower in pairwise(floors))
