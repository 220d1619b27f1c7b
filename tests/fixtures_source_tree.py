"""The project's own packages, modules and imports."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import grimp

from tests.fixtures_paths import PROJECT

PACKAGES = ("outbox", "api", "checker", "spark", "cli", "devservers", "chaos", "outbox_client")


def modules(package: str) -> list[Path]:
    """Return the modules of a top-level package, relative to the project."""
    found = (PROJECT / package).rglob("*.py")
    return sorted(path.relative_to(PROJECT) for path in found if "build" not in path.parts)


@cache
def import_graph() -> grimp.ImportGraph:
    """Return the imports among all packages."""
    return grimp.build_graph(*PACKAGES, cache_dir=None)
