"""Named SQL statements, read from the ``.sql`` file beside the module that runs them.

Each statement comes after a line ``-- name: the_name`` and a comment on what it reads, writes and
locks. Parameters are in psycopg's form, ``%(name)s``. A module loads its own file only, with
``load(__name__)``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def load(module: str) -> Mapping[str, LiteralString]:
    """Return by name the statements of the ``.sql`` file beside a module with this dotted name."""
    package, name = module.rsplit(".", 1)
    text = files(package).joinpath(f"{name}.sql").read_text("utf-8")
    parts = _NAME.split(text)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {name: cast("LiteralString", body.strip()) for name, body in pairs}
