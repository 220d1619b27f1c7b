"""What a block of code of a page calls is there: targets of make and modules."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.fixtures_paths import PROJECT
from tests.unit.docs.fixtures_pages import EDITED, name

BLOCK: Final = re.compile(r"^( *)```[a-z]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
COMMAND: Final = re.compile(r"^(?:.*&& *)?make ([a-z-]+)", re.MULTILINE)
MODULE: Final = re.compile(r"\bpython -m ([\w.]+)")
MAKEFILE: Final = (PROJECT / "Makefile").read_text("utf-8")


def blocks(page: Path) -> list[str]:
    """Return the blocks of code of a page."""
    return [text.strip() for _, text in BLOCK.findall(page.read_text("utf-8"))]


WITH_BLOCKS: Final = [page for page in EDITED if blocks(page)]


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=name)
def test_what_a_block_calls_is_there(page: Path) -> None:
    text = "\n".join(blocks(page))
    assert [each for each in COMMAND.findall(text) if f"\n{each}: " not in MAKEFILE] == []
    modules = {each.replace(".", "/") for each in MODULE.findall(text)} - {"venv", "pip"}
    missing = [
        each
        for each in modules
        if not any((PROJECT / f"{each}{end}").exists() for end in (".py", "/__main__.py"))
    ]
    assert missing == []
