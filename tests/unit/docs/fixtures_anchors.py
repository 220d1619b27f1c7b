"""The anchors of a page."""

from __future__ import annotations

import re
from pathlib import Path


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    return {slug(each) for each in re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)}
