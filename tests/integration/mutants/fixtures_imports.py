"""The modules of a project that a process has imported, and who of them imports whom.

After the change of one file, the modules that it concerns are imported again, and no others.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator, Set
from pathlib import Path
from typing import Final


class ImportedModules:
    """What this process has imported until now from below a folder."""

    def __init__(self, home: Path, kept: Collection[str] = ()) -> None:
        """Note what there is; modules that are ``kept`` are never imported again."""
        files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
        places = {name: Path(file).resolve() for name, file in files.items() if file}
        self._places: Final = {
            name: place
            for name, place in places.items()
            if place.is_relative_to(home) and name not in ("__main__", *kept)
        }
        self._uses: Final = {name: {*_named_in(at)} for name, at in self._places.items()}

    def forget(self, changed: Path) -> Set[str]:
        """Let the module of a file, and all that import it, be imported again; return their names.

        Statements are read by the module beside them; any other file, by any module.
        """
        beside = changed.with_suffix(".py")
        found = {name for name, place in self._places.items() if place == beside}
        is_known = beside == changed or (found and changed.suffix == ".sql")
        gone = self._with_users(found) if is_known else self._places.keys()
        for name in gone:
            module, (package, _, member) = sys.modules.pop(name), name.rpartition(".")
            around = vars(sys.modules.get(package, module))
            if around.get(member) is module:  # else `from package import member` finds it there
                del around[member]
        return gone

    def _with_users(self, modules: Set[str]) -> Set[str]:
        found, more = modules, modules
        while more:
            more = {name for name, used in self._uses.items() if used & more} - found
            found |= more
        return found


def _named_in(module: Path) -> Iterator[str]:
    """Yield what may be a module in the imports of a module, wherever they are in it."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (part for each in node.names for part in _parts(each.name))
        if isinstance(node, ast.ImportFrom):
            assert node.module is not None, f"{module} has a relative import"
            yield from _parts(node.module)
            yield from (f"{node.module}.{each.name}" for each in node.names)


def _parts(name: str) -> Iterator[str]:
    """Yield a module and the packages around it, which an import of it imports first."""
    while name:
        yield name
        name = name.rpartition(".")[0]
