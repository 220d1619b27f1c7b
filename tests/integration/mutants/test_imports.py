"""A changed module is imported again with all that import it, and with nothing else."""

from __future__ import annotations

import sys
from importlib import import_module, invalidate_caches
from pathlib import Path

import pytest

from tests.integration.mutants.fixtures_imports import ImportedModules

MODULES = {
    "__init__": "",
    "low": "VALUE = 'as it was'",
    "middle": "from {package} import low\nVALUE = low.VALUE",
    "high": "def value():\n    from {package}.middle import VALUE\n    return VALUE",
    "beside": "",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Import a package whose module `high` uses `middle`, which uses `low`; return its name."""
    name = f"package_of_{tmp_path.name}"
    (tmp_path / name).mkdir()
    for module, text in MODULES.items():
        (tmp_path / name / f"{module}.py").write_text(text.format(package=name))
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("high", "middle", "beside"):
        import_module(f"{name}.{module}")
    return name


def test_what_imports_a_changed_module_is_imported_again(package: str, tmp_path: Path) -> None:
    imported = ImportedModules(tmp_path)
    beside = sys.modules[f"{package}.beside"]
    changed = tmp_path / package / "low.py"
    changed.write_text("VALUE = 'as it is now'")
    gone = imported.forget(changed)
    invalidate_caches()
    assert gone == {f"{package}.{module}" for module in ("low", "middle", "high")}
    assert import_module(f"{package}.high").value() == "as it is now"
    assert sys.modules[f"{package}.beside"] is beside


def test_after_a_change_of_statements_the_module_beside_them_is_imported_again(
    package: str, tmp_path: Path
) -> None:
    gone = ImportedModules(tmp_path).forget(tmp_path / package / "middle.sql")
    assert gone == {f"{package}.{module}" for module in ("middle", "high")}


@pytest.mark.parametrize("file", ["low.html", "new.sql"])
def test_after_a_change_of_what_is_no_module_everything_is_imported_again(
    package: str, tmp_path: Path, file: str
) -> None:
    gone = ImportedModules(tmp_path).forget(tmp_path / package / file)
    assert gone == {package, *(f"{package}.{each}" for each in MODULES if each != "__init__")}
    assert not gone & sys.modules.keys()


def test_what_is_kept_is_not_imported_again(package: str, tmp_path: Path) -> None:
    imported = ImportedModules(tmp_path, kept=[f"{package}.high"])
    assert imported.forget(tmp_path / package / "low.py") == {f"{package}.low", f"{package}.middle"}
    assert f"{package}.high" in sys.modules


def test_a_file_that_nobody_has_imported_concerns_nobody(package: str, tmp_path: Path) -> None:
    assert ImportedModules(tmp_path).forget(tmp_path / package / "new.py") == set()
    assert f"{package}.low" in sys.modules
