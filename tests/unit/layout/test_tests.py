"""Unit tests mirror the modules that they test, and helpers of tests say what they build."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.aged_installation.fixtures_young_only import YOUNG_ONLY
from tests.conftest import DEEP
from tests.fixtures_paths import PROJECT
from tests.unit.layout.fixtures_source_tree import modules

UNIT = PROJECT / "tests" / "unit"
SUBJECTS = {"deploy", "docs", "layout"}
"""Folders of `tests/unit` that test files which are no Python modules."""
NAMED_BY_SUBJECT = {
    "api/test_bind.py": "the addresses that the API's settings allow",
    "chaos/judge/test_judge.py": "the invariants together, over written histories",
    "chaos/judge/test_judge_lost_tail.py": "the same after PostgreSQL lost its newest commits",
    "checker/checks/test_check_histories.py": "random histories of checks against an oracle",
    "checker/checks/test_check_schedule.py": "the policy and the settlement together",
    "outbox/http_checks/test_check_schemas.py": "docs/schemas against request and answer",
    "spark/cut/test_histories.py": "random histories over many runs",
    "spark/cut/test_simulated_cuts.py": "random cuts of a simulated installation",
    "spark/jvm/test_remote_session.py": "the session over Spark Connect",
    "spark/jvm/test_session_settings.py": "the settings of the session",
    "spark/report/test_screenshots.py": "the pictures of the report in docs/images",
}
FROM_A_TEST = re.compile(r"^tests\..*\.test_\w+$")
OWN_PROGRAMS = ("tests/compatibility/", "tests/model/")
"""Folders of `tests` that are programs: `python -m tests.model`."""


def unit_tests() -> list[str]:
    """Return the unit tests of Python packages, relative to `tests/unit`."""
    found = (path.relative_to(UNIT) for path in UNIT.rglob("test_*.py"))
    return sorted(str(path) for path in found if path.parts[0] not in SUBJECTS)


@pytest.mark.parametrize("test", [each for each in unit_tests() if each not in NAMED_BY_SUBJECT])
def test_a_unit_test_mirrors_a_module_or_a_folder(test: str) -> None:
    mirrored = PROJECT / test.replace("test_", "", 1)
    assert mirrored.is_file() or mirrored.with_suffix("").is_dir(), mirrored


@pytest.mark.parametrize("test", NAMED_BY_SUBJECT)
def test_a_test_that_is_named_by_its_subject_exists_and_has_no_module_to_mirror(test: str) -> None:
    assert (UNIT / test).is_file()
    assert not (PROJECT / test.replace("test_", "", 1)).exists()


def test_a_helper_of_tests_says_what_it_builds() -> None:
    helpers = [
        path
        for path in modules("tests")
        if not str(path).startswith(OWN_PROGRAMS) and not path.stem.startswith(("test_", "__"))
    ]
    named = [path for path in helpers if path.stem == "conftest" or is_fixture(path)]
    assert sorted(set(helpers) - set(named)) == []


def test_nothing_is_imported_from_a_test() -> None:
    """What tests share is a helper; a module of tests is imported only whole, by lists of them."""
    found = {
        str(path): node.module
        for path in modules("tests")
        for node in ast.walk(ast.parse((PROJECT / path).read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and FROM_A_TEST.search(node.module or "")
    }
    assert found == {}


def test_a_file_with_deep_tests_says_so() -> None:
    """`tests/conftest.py` leaves out others; what it looks for has one name outside the files."""
    marking = {
        str(path): re.findall(r"def (\w+)", text.partition("mark.deep")[2])[0]
        for path in modules("tests")
        if not path.name.startswith("test_") and str(path) != "tests/conftest.py"
        if "mark.deep" in (text := (PROJECT / path).read_text("utf-8"))
    }
    assert marking == {"tests/integration/api/conftest.py": "way_in"}
    assert DEEP.search("way_in")


def is_fixture(path: Path) -> bool:
    """Return whether the module is named after what it builds."""
    return path.stem.startswith("fixtures_")


@pytest.mark.parametrize("file", YOUNG_ONLY)
def test_a_test_that_is_excused_from_the_aged_installation_exists(file: str) -> None:
    """A renamed or moved one would run there, and fail where nobody looks every day."""
    there = {
        getattr(each, "name", "") for each in ast.walk(ast.parse((PROJECT / file).read_text()))
    }
    missing = [name for name in YOUNG_ONLY[file] if name and name not in there]
    assert missing == []
