"""The pictures of docs/console.md: which page each shows, and its size."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.fixtures_paths import PROJECT

FOLDER: Final = PROJECT / "docs" / "images"
WIDTH, HEIGHT = 1080, 640
PICTURES: Final = {
    "start": "/?q=group:billing+tag:shown",
    "message": "/messages/{message}",
    "parked": "/parked",
    "group": "/groups/billing",
    "publishing": "/publishing",
    "overview": "/overview",
    "audit": "/audit",
    "system": "/system",
}
"""The page of each picture, below the prefix."""


def name_of(page: str, *, dark: bool) -> Path:
    """Return the file of a picture."""
    return FOLDER / f"console-{page}-{'dark' if dark else 'light'}.png"
