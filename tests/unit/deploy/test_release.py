"""One version: images, manifests, projects and pages name that of pyproject.toml, and a release
changes them all.
"""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from tests.fixtures_paths import PROJECT

release = SimpleNamespace(**runpy.run_path(str(PROJECT / "deploy" / "release.py")))
VERSION = release.version_of(PROJECT)
POM = {
    each.tag.rpartition("}")[2]: each.text or ""
    for each in ElementTree.parse(PROJECT / "pom.xml").iter()
}


def test_every_file_names_the_one_version() -> None:
    found = {str(each.relative_to(PROJECT)): release.named(each) for each in release.files(PROJECT)}
    wrong = {name: versions for name, versions in found.items() if versions - {VERSION}}
    assert wrong == {}
    naming = (*release.PROJECTS, "docker-compose.yml", "deploy/spark/README.md")
    assert all(found.get(name) for name in naming)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy every file that a release may change."""
    for file in (*release.files(PROJECT), PROJECT / "CHANGELOG.md"):
        target = tmp_path / file.relative_to(PROJECT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    return tmp_path


def test_a_release_gives_its_version_to_everything(copy: Path) -> None:
    before = {file: release.named(file) for file in release.files(copy)}
    assert release.main(["7.8.9"], copy, "2031-02-03") == 0
    after = {file: release.named(file) for file in release.files(copy)}
    assert after == {file: {"7.8.9"} if found else set() for file, found in before.items()}
    bill = json.loads((copy / "dist/outbox-7.8.9.cdx.json").read_text("utf-8"))
    assert bill["metadata"]["component"]["version"] == "7.8.9"
    refs = {each["bom-ref"] for each in bill["components"]}
    assert f"pkg:maven/org.apache.kafka/kafka-clients@{POM['spark.kafka-clients.version']}" in refs
    changelog = (copy / "CHANGELOG.md").read_text("utf-8")
    assert "## [Unreleased]\n\n## [7.8.9] - 2031-02-03\n\n### " in changelog


@pytest.mark.parametrize("given", [["0.0.1"], ["seven"], [], ["1.2.3", "4.5.6"]])
def test_a_release_refuses_what_is_below_the_present_version_and_changes_nothing(
    given: list[str], copy: Path
) -> None:
    before = {file: file.read_text("utf-8") for file in release.files(copy)}
    assert release.main(given, copy) == 2
    assert {file: file.read_text("utf-8") for file in release.files(copy)} == before
