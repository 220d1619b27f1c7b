"""As root: a stand-in outlives its place only until the next one is made, and never its users."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from devservers.unprivileged import reachable, remove_abandoned, unprivileged_user

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has stand-ins")


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keep these stand-ins apart from those of other processes."""
    with tempfile.TemporaryDirectory(prefix="stand-ins-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setattr("devservers.unprivileged.FALLBACK_PARENT", Path(folder))
        yield Path(folder)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder that nobody but root can enter."""
    folder = tmp_path / "closed" / "clone"
    folder.mkdir(parents=True)
    folder.parent.chmod(0o700)
    return folder


def stand_in(place: Path) -> Path:
    """Return the stand-in of a folder below the place, with a file in it."""
    made = reachable(place / "postgres", unprivileged_user())
    assert not made.is_relative_to(place)
    (made / "PG_VERSION").write_text("18")
    return made


def test_a_stand_in_is_kept_as_long_as_its_place_exists(place: Path) -> None:
    made = stand_in(place)
    remove_abandoned()
    assert (made / "PG_VERSION").is_file()


def test_a_stand_in_of_a_deleted_place_is_removed_when_the_next_one_is_made(place: Path) -> None:
    abandoned = stand_in(place)
    shutil.rmtree(place)
    stand_in(place.with_name("another"))
    assert not abandoned.exists()


def test_a_stand_in_in_which_a_process_works_is_kept(place: Path) -> None:
    made = stand_in(place)
    shutil.rmtree(place)
    with subprocess.Popen(["sleep", "60"], cwd=made) as process:
        remove_abandoned()
        assert made.exists()
        process.kill()
    remove_abandoned()
    assert not made.exists()
