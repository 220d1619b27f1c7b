"""A folder has few doors, its doors form no circle, and a package has few floors."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.unit.layout.fixtures_source_tree import PACKAGES, Doors, door_imports, doors, folders

MOST_DOORS = 14
MOST_FLOORS = 5
FOLDERS = [folder for package in PACKAGES for folder in folders(package)]
ROOMS = [*FOLDERS, *folders("benchmarks"), *folders("tests")]
CORRIDORS = {
    "tests": "one folder for each suite, and the fixtures that all suites share",
    "tests/integration": "one folder for each package that has a server, as the product has them",
}
"""Folders with more doors, and why."""
LAYERED = ["outbox", "api", "checker", "spark", "cli", "chaos"]


def floors(imports: Doors) -> int:
    """Return the number of doors on the longest chain of imports below the entry point."""
    height: dict[str, int] = {}
    inner = {door: targets for door, targets in imports.items() if door != "__main__"}
    for door in TopologicalSorter(inner).static_order():
        height[door] = 1 + max((height[each] for each in imports.get(door, ())), default=0)
    return max(height.values(), default=0)


@pytest.mark.parametrize("folder", [each for each in ROOMS if str(each) not in CORRIDORS], ids=str)
def test_a_folder_has_few_doors(folder: Path) -> None:
    assert len(doors(folder)) <= MOST_DOORS, sorted(doors(folder))


@pytest.mark.parametrize("folder", CORRIDORS)
def test_a_folder_that_may_have_more_doors_has_them(folder: str) -> None:
    assert len(doors(Path(folder))) > MOST_DOORS


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_the_doors_of_a_folder_form_no_circle(folder: Path) -> None:
    try:
        TopologicalSorter(door_imports(folder)).prepare()
    except CycleError as error:
        pytest.fail(f"{folder}: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize("package", LAYERED)
def test_a_package_has_at_most_five_floors_below_its_entry_point(package: str) -> None:
    assert floors(door_imports(Path(package))) <= MOST_FLOORS


def test_a_chain_of_three_imports_has_four_floors() -> None:
    assert floors({"a": {"b", "d"}, "b": {"c"}, "c": {"d"}, "d": set()}) == 4
