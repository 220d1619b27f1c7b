"""The pages of the project."""

from __future__ import annotations

from pathlib import Path

from tests.fixtures_paths import PROJECT

FOLDERS = ("docs", "deploy", "outbox_client")
PAGES = sorted(
    [*PROJECT.glob("*.md"), *(page for each in FOLDERS for page in (PROJECT / each).rglob("*.md"))]
)
EDITED = [page for page in PAGES if page.name != "CHANGELOG.md"]
"""All but the history of changes."""


def name(path: Path) -> str:
    """Return a path below the project's folder."""
    return str(path.relative_to(PROJECT))
