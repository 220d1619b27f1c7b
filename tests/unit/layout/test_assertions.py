"""Each test asserts something, by itself or by a helper, and each skip names what is missing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.fixtures_paths import PROJECT
from tests.unit.layout.fixtures_source_tree import modules

Function = ast.FunctionDef | ast.AsyncFunctionDef

ASSERTING: Final = {"raises", "warns", "fail", "validate"}
"""Functions that fail a test: those of pytest, and the validators of schemas."""
BY_RUNNING: Final = {
    "test_a_memory_store_answers_as_a_dictionary_would": "each rule of the machine asserts",
    "test_postgres_answers_as_a_dictionary_would": "each rule of the machine asserts",
    "test_a_run_of_the_reconciliation_begins": "without the lock the block is not entered",
    "test_migrate_up_ends": "it would wait for the lock for ever",
    "test_every_failpoint_of_a_profile_exists": "arming refuses a name that does not exist",
}
"""Tests without an assertion, and why they fail all the same when their promise is broken."""
SKIPS: Final = {"skip", "skipif"}


def functions(tree: ast.AST) -> Iterator[Function]:
    """Yield every function of a module."""
    return (each for each in ast.walk(tree) if isinstance(each, Function))


@cache
def trees() -> dict[Path, ast.Module]:
    """Return every module of the tests."""
    return {path: ast.parse((PROJECT / path).read_text("utf-8")) for path in modules("tests")}


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Yield each call with the last part of the called name."""
    for each in ast.walk(tree):
        if isinstance(each, ast.Call):
            called = each.func
            if isinstance(called, ast.Attribute):
                yield called.attr, each
            elif isinstance(called, ast.Name):
                yield called.id, each


def asserts(function: Function) -> bool:
    """Return whether a function has an assertion of its own."""
    if any(isinstance(each, ast.Assert) for each in ast.walk(function)):
        return True
    return any(name in ASSERTING for name, _ in calls(function))


def asserting_helpers() -> set[str]:
    """Return the names of which every helper of that name asserts."""
    named: dict[str, list[bool]] = {}
    for tree in trees().values():
        for function in functions(tree):
            named.setdefault(function.name, []).append(asserts(function))
    return {name for name, found in named.items() if all(found)}


def without_assertion() -> set[str]:
    """Return the tests that neither assert nor call a helper that does."""
    helpers = asserting_helpers()
    return {
        function.name
        for path, tree in trees().items()
        if path.name.startswith("test_")
        for function in functions(tree)
        if function.name.startswith("test_")
        and not asserts(function)
        and not any(name in helpers for name, _ in calls(function))
    }


def test_every_test_asserts_or_says_why_running_is_enough() -> None:
    assert without_assertion() == set(BY_RUNNING)


def test_every_skip_names_what_is_missing() -> None:
    silent = [
        f"{path}:{call.lineno}"
        for path, tree in trees().items()
        for name, call in calls(tree)
        if _skips(call) and not _has_reason(name, call)
    ]
    assert silent == []


def _skips(call: ast.Call) -> bool:
    """Return whether a call is `pytest.skip` or a mark that skips."""
    called = call.func
    if not isinstance(called, ast.Attribute) or called.attr not in SKIPS:
        return False
    return ast.unparse(called.value) in ("pytest", "pytest.mark")


def _has_reason(name: str, call: ast.Call) -> bool:
    texts = [each.value for each in call.keywords if each.arg in ("reason", "msg")]
    if name == "skip":
        texts += call.args
    return any(ast.unparse(text).strip("'\"f ") for text in texts)
