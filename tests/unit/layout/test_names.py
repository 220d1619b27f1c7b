"""A class name has one meaning in a package, and no former name is back."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from tests.fixtures_paths import PROJECT
from tests.unit.layout.fixtures_source_tree import PACKAGES, classes, modules

FORMER_FOLDERS = ["outbox/storage", "outbox/publication", "outbox/relay_protocol", "cli/embedded"]
FORMER_MODULES = {
    "benchmarks": "beasts sweep",
    "outbox": "callback_guard ends every_table failure_text held_desk installation_desk "
    "judged_sessions lanes leaves leaving log_facts names plain_outbox resolving retire secrets "
    "shard_desk standby_wait standing turns",
    "api": "configured cursors directory endpoint_tests gauges known_topics tally",
    "checker": "asking chore fair_turns findings group_rounds leaves relay_facts relay_turns "
    "relay_work retire server_check",
    "spark": "away by_sha256 carry chain classify failures fold foreign gone home lookup matched "
    "pairs parts printable publish record_classes resident stage stretches stuck sum_up take_cut "
    "turned_up window",
    "cli": "bound_exec first_key run_findings story",
    "devservers": "bound_exec",
    "chaos": "board fresh keeper leftovers planted polls reached rebinding truths world zoo",
    "tests": "cells four_faults grafting marks places played storm",
}
FORMER_CLASSES = {
    "outbox": "Standing Told",
    "checker": "Asker Chore Finding",
    "spark": "Away Odd Strays Window",
    "chaos": "Breaker",
}


def former(names: dict[str, str]) -> list[tuple[str, str]]:
    """Return each package with each name that it had."""
    return [(package, name) for package, line in names.items() for name in line.split()]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_class_name_has_one_meaning_in_a_package(package: str) -> None:
    places: dict[str, list[Path]] = defaultdict(list)
    for path in modules(package):
        for name in classes(path):
            places[name].append(path)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@pytest.mark.parametrize("folder", FORMER_FOLDERS)
def test_a_former_folder_holds_no_module(folder: str) -> None:
    assert not list((PROJECT / folder).rglob("*.py"))


@pytest.mark.parametrize(("package", "name"), former(FORMER_MODULES))
def test_a_former_module_does_not_exist(package: str, name: str) -> None:
    assert [path for path in modules(package) if path.stem == name] == []


@pytest.mark.parametrize(("package", "name"), former(FORMER_CLASSES))
def test_a_former_class_does_not_exist(package: str, name: str) -> None:
    assert [path for path in modules(package) if name in classes(path)] == []
