"""The archive of Spark's classes: named by what it was recorded with, and used only when there."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark.jvm.class_archive import archive_options, archive_path
from spark.jvm.session import LONG_JVM, SessionSettings, session_settings


def test_another_java_has_an_archive_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = set()
    for home in ("one", "two"):
        java = tmp_path / home / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(home)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / home))
        names.add(archive_path(tmp_path))
    assert len(names) == 2


def test_without_java_there_is_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert archive_path(tmp_path) is None
    assert archive_options(tmp_path) == ""


def test_only_an_archive_that_was_recorded_is_used(tmp_path: Path) -> None:
    folder = tmp_path / "with a space"
    folder.mkdir()
    settings = SessionSettings(
        master="local[2]", jars_dir=folder, log_file=Path("log"), expected_records=10**9
    )
    jvm = "spark.driver.extraJavaOptions"
    assert session_settings(settings)[jvm] == LONG_JVM
    archive = archive_path(folder)
    assert archive is not None
    archive.touch()
    used = session_settings(settings)[jvm]
    assert used.startswith(f'{LONG_JVM} "-XX:SharedArchiveFile={archive}" ')
