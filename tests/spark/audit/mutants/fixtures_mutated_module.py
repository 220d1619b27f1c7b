"""Replaces one rule of a module temporarily, in every place that imported it.

A mutant is given by the code line that it changes. Changed functions get the other code, so
whoever imported them runs it too; changed values are set in the module that names them.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any


@contextmanager
def mutated(module: ModuleType, before: str, after: str) -> Iterator[None]:
    """Run the block with ``after`` in place of ``before`` in the text of a module.

    Raises AssertionError unless ``before`` occurs there exactly once.
    """
    text = inspect.getsource(module)
    places = text.count(before)
    assert places == 1, f"{before!r} occurs {places} times in {module.__name__}"
    changed = text.replace(before, after)
    mutated = {"__name__": module.__name__, "__file__": module.__file__}
    exec(compile(changed, str(module.__file__), "exec"), mutated)
    undo = [_replace(module, mutated, name) for name in _changed_names(text, changed)]
    assert undo, "nothing that has a name differs"
    try:
        yield
    finally:
        for each in undo:
            each()


def _changed_names(text: str, changed: str) -> list[str]:
    """Return the top-level names whose definitions differ."""
    pairs = zip(ast.parse(text).body, ast.parse(changed).body, strict=True)
    return [_name(old) for old, new in pairs if ast.dump(old) != ast.dump(new)]


def _name(node: ast.stmt) -> str:
    match node:
        case ast.FunctionDef(name=name):
            return name
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case _:
            raise AssertionError("a mutant changes a function or a value")


def _replace(module: ModuleType, mutated: dict[str, Any], name: str) -> Callable[[], None]:
    """Install the other definition of a name; return the function that restores the old one."""
    old, new = getattr(module, name), mutated[name]
    if isinstance(old, FunctionType):
        return _swap_code(inspect.unwrap(old), inspect.unwrap(new))
    setattr(module, name, new)
    return lambda: setattr(module, name, old)


def _swap_code(function: Any, other: Any) -> Callable[[], None]:
    before = function.__code__
    function.__code__ = other.__code__
    return lambda: setattr(function, "__code__", before)
