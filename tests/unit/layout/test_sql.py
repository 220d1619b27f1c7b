"""SQL is beside the one module that runs it, and no other module loads it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fixtures_paths import PROJECT
from tests.unit.layout.fixtures_source_tree import modules

FILES = sorted(path.relative_to(PROJECT) for path in (PROJECT / "outbox").rglob("*.sql"))


@pytest.mark.parametrize("file", FILES, ids=str)
def test_a_file_of_sql_is_loaded_by_the_module_beside_it(file: Path) -> None:
    assert "load(__name__)" in (PROJECT / file).with_suffix(".py").read_text("utf-8")


def test_no_module_loads_the_sql_of_another_one() -> None:
    loading = re.compile(r"\bload\((?!__name__\))")
    texts = {path: (PROJECT / path).read_text("utf-8") for path in modules("outbox")}
    users = {path: text for path, text in texts.items() if "sessions.statements import" in text}
    assert users
    assert [path for path, text in users.items() if loading.search(text)] == []
