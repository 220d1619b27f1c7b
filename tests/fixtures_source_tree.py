"""The project's own files: folders, modules, imports, classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import grimp

from tests.fixtures_paths import PROJECT

PACKAGES = ("outbox", "api", "checker", "spark", "cli", "devservers", "chaos", "outbox_client")

Doors = dict[str, set[str]]
"""Each door of a package (a module or a folder) and the doors that it imports."""


def modules(package: str) -> list[Path]:
    """Return the modules of a top-level package, relative to the project."""
    found = (PROJECT / package).rglob("*.py")
    return sorted(path.relative_to(PROJECT) for path in found if "build" not in path.parts)


def folders(package: str) -> list[Path]:
    """Return the folders of a top-level package that hold modules."""
    return sorted({path.parent for path in modules(package)})


def doors(folder: Path) -> set[str]:
    """Return the modules and sub-folders of a folder."""
    here = PROJECT / folder
    files = {path.stem for path in here.glob("*.py") if path.stem != "__init__"}
    return files | {path.name for path in here.iterdir() if any(path.glob("*.py"))}


@cache
def import_graph() -> grimp.ImportGraph:
    """Return the imports among all packages."""
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def imported_by(module: str) -> set[str]:
    """Return the modules of the project that a module imports."""
    return import_graph().find_modules_directly_imported_by(module)


def door_imports(folder: Path) -> Doors:
    """Return which door of a folder imports which other door of it."""
    prefix = ".".join(folder.parts) + "."
    found: Doors = {}
    for module in import_graph().modules:
        if not module.startswith(prefix):
            continue
        door = module.removeprefix(prefix).partition(".")[0]
        inside = (each for each in imported_by(module) if each.startswith(prefix))
        targets = {each.removeprefix(prefix).partition(".")[0] for each in inside}
        found.setdefault(door, set()).update(targets - {door})
    return found


def classes(path: Path) -> Iterator[str]:
    """Yield the names of a module's own classes."""
    for node in ast.parse((PROJECT / path).read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            yield node.name
