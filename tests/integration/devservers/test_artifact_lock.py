"""Nothing that Maven has fetched is used unless it is what the lock says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

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


def test_each_release_of_kafka_that_can_be_fetched_is_locked() -> None:
    locked = {each.folder for each in read_lock()}
    assert {kafka_folder(release).name for release in ("", *KAFKA_RELEASES)} <= locked
