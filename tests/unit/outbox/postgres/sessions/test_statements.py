"""Each ``.sql`` file is beside the one module that loads it, and each statement is used there."""

from __future__ import annotations

from pathlib import Path

import pytest

from outbox.postgres.sessions.statements import load
from tests.fixtures_paths import PROJECT

POSTGRES = PROJECT / "outbox" / "postgres"
PACKAGES = ("outbox", "api", "checker", "spark", "cli", "devservers", "chaos", "benchmarks")
FILES = sorted(path.relative_to(PROJECT) for path in POSTGRES.rglob("*.sql"))


def loaders() -> set[Path]:
    """Return the modules that load statements."""
    modules = (path for package in PACKAGES for path in (PROJECT / package).rglob("*.py"))
    text = {path.relative_to(PROJECT): path.read_text("utf-8") for path in modules}
    return {path for path, source in text.items() if "sessions.statements import load" in source}


def test_each_file_is_loaded_by_the_module_beside_it() -> None:
    assert {path.with_suffix(".py") for path in FILES} == loaders()


@pytest.mark.parametrize("path", FILES, ids=str)
def test_the_module_uses_each_statement_of_its_file(path: Path) -> None:
    module = ".".join(path.with_suffix("").parts)
    source = (PROJECT / path.with_suffix(".py")).read_text("utf-8")
    assert [name for name in load(module).names() if f'"{name}"' not in source] == []
