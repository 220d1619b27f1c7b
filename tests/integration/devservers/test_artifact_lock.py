"""Nothing that Maven has fetched is used unless it is what the lock says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cli.dev import fetch
from devservers.artifact_lock import read_lock, verify_artifacts
from devservers.artifacts import KAFKA_RELEASES, RUNTIME, kafka_folder
from devservers.errors import ArtifactsChanged


@pytest.fixture
def fetched(tmp_path: Path) -> Path:
    """Return a copy of a fetched folder."""
    return Path(shutil.copytree(RUNTIME / "spark", tmp_path / "spark"))


@pytest.mark.parametrize("folder", ["kafka", "spark", "postgres"])
def test_what_is_fetched_is_what_is_locked(folder: str) -> None:
    verify_artifacts(RUNTIME / folder)
    jars = {path.name for path in (RUNTIME / folder).glob("*.jar")}
    assert jars == {each.file for each in read_lock() if each.folder == folder}


def test_a_jar_with_one_changed_byte_is_refused_by_name(fetched: Path) -> None:
    jar = next(fetched.glob("kafka-clients-*.jar"))
    jar.write_bytes(jar.read_bytes()[:-1] + b"\1")
    with pytest.raises(ArtifactsChanged, match=jar.name):
        verify_artifacts(fetched)


def test_a_jar_that_the_lock_does_not_know_is_refused(fetched: Path) -> None:
    (fetched / "extra-1.0.jar").write_bytes(b"PK")
    with pytest.raises(ArtifactsChanged, match=r"extra-1\.0\.jar"):
        verify_artifacts(fetched)


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return what a program in place of Maven copies into an empty `.runtime`."""
    sent, target, programs = (tmp_path / name for name in ("sent", "runtime", "bin"))
    for folder in fetch.FOLDERS:
        (sent / folder).mkdir(parents=True)
        for jar in (RUNTIME / folder).glob("*.jar"):
            (sent / folder / jar.name).symlink_to(jar)
    target.mkdir()
    programs.mkdir()
    maven = programs / "mvn"
    maven.write_text(f"#!/bin/sh\ncp -RL {sent}/* {target}/ && test ! -e {tmp_path}/fails\n")
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setattr(fetch, "RUNTIME", target)
    return sent


def test_a_set_up_with_one_changed_jar_keeps_and_runs_nothing(
    registry: Path, tmp_path: Path
) -> None:
    jar = next((registry / "spark").glob("*.jar"))
    changed = jar.read_bytes()[:-1] + b"\1"
    jar.unlink()
    jar.write_bytes(changed)
    said = list[str]()

    def first_step_only(step: str) -> None:
        said.append(step)
        assert len(said) == 1

    with pytest.raises(ArtifactsChanged, match=jar.name):
        fetch.fetch_artifacts(first_step_only)
    assert list((tmp_path / "runtime").iterdir()) == []


def test_each_release_of_kafka_that_can_be_fetched_is_locked() -> None:
    locked = {each.folder for each in read_lock()}
    assert {kafka_folder(release).name for release in ("", *KAFKA_RELEASES)} <= locked
