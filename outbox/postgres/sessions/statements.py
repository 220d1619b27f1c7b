"""Named SQL statements, read from the ``.sql`` file beside the module that runs them.

Each statement comes after a line ``-- name: the_name`` and a comment on what it reads, writes and
locks. Parameters are in psycopg's form, ``%(name)s``. A module loads its own file only, with
``load(__name__)``.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


class Statements:
    """The statements of one file by name."""

    def __init__(self, texts: dict[str, LiteralString]) -> None:
        self._texts = texts

    def __getitem__(self, name: str) -> LiteralString:
        return self._texts[name]

    def names(self) -> list[str]:
        """Return the names in the order of the file."""
        return list(self._texts)


@cache
def load(module: str) -> Statements:
    """Return the statements of the ``.sql`` file beside a module, given by its dotted name."""
    package, name = module.rsplit(".", 1)
    text = files(package).joinpath(f"{name}.sql").read_text("utf-8")
    parts = _NAME.split(text)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return Statements({name: cast("LiteralString", body.strip()) for name, body in pairs})
