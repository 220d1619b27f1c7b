"""The project's own packages and modules."""

from __future__ import annotations

from pathlib import Path

from tests.fixtures_paths import PROJECT


def modules(package: str) -> list[Path]:
    """Return the modules of a top-level package, relative to the project."""
    found = (PROJECT / package).rglob("*.py")
    return sorted(path.relative_to(PROJECT) for path in found if "build" not in path.parts)
