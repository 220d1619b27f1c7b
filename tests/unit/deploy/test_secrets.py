"""deploy/make-secrets.sh makes what is missing, once, and never replaces what opens data."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.fixtures_paths import PROJECT
from tests.unit.deploy.fixtures_compose import COMPOSE

DOCKER = """#!/bin/sh
case "$*" in
    "compose config"*) printf 'name: %s\\nservices: {}\\n' "$PROJECT" ;;
    "volume ls"*"project=$PROJECT "*) echo "$VOLUMES" ;;
    "volume ls --quiet") echo "$COPIED" ;;
esac
"""
"""Stands for the container engine: volumes of one project, and one that compose has not made."""
MARK = ".env"
"""Not a secret: deploy/first-step.yml reads it."""


def make_secrets(
    folder: Path,
    volumes: str = "",
    *,
    copied: str = "",
    project: str = "outbox",
    answers: bool = True,
) -> Path:
    """Run the script in a folder of the test; return what it has made.

    ``volumes`` is what the engine lists for the project, ``copied`` what it lists without the mark
    of a project, if it answers. Raises CalledProcessError.
    """
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "docker").write_text(
        DOCKER if answers else "#!/bin/sh\necho 'no daemon' >&2; exit 1\n"
    )
    (tools / "docker").chmod(0o755)
    shutil.copy(PROJECT / "deploy/make-secrets.sh", folder)
    subprocess.run(
        [folder / "make-secrets.sh"],
        check=True,
        timeout=60,
        capture_output=True,
        text=True,
        env={
            "PATH": f"{tools}:{os.defpath}",
            "VOLUMES": volumes,
            "COPIED": copied,
            "PROJECT": project,
        },
    )
    return folder / "secrets"


def test_the_secrets_are_made_once_and_nobody_else_can_read_them(tmp_path: Path) -> None:
    made = make_secrets(tmp_path)
    texts = {path.name: path.read_text() for path in made.iterdir()}
    named = {Path(each["file"]) for each in COMPOSE["secrets"].values()}
    assert {path.name for path in named if path.parent.name == "secrets"} == set(texts) - {MARK}
    assert len(set(texts.values())) == len(texts)
    assert made.stat().st_mode & 0o777 == 0o700
    assert make_secrets(tmp_path, volumes="outbox_postgres-data") == made
    assert {path.name: path.read_text() for path in made.iterdir()} == texts


@pytest.mark.parametrize("lost", ["postgres_password", "auth_pepper", "encryption_keys"])
def test_a_secret_that_opens_the_data_is_not_replaced_and_the_backup_is_named(
    tmp_path: Path, lost: str
) -> None:
    (tmp_path / "deploy").mkdir()
    for moment in ("20260101T000000Z", "20260102T000000Z"):
        (tmp_path / "backups" / moment / "secrets").mkdir(parents=True)
    (tmp_path / "backups/20260103T000000Z.part/secrets").mkdir(parents=True)
    made = make_secrets(tmp_path / "deploy")
    (made / lost).unlink()
    with pytest.raises(subprocess.CalledProcessError) as refused:
        make_secrets(tmp_path / "deploy", volumes="outbox_postgres-data")
    assert refused.value.returncode == 2
    assert lost in refused.value.stderr
    assert "cp -a backups/20260102T000000Z/secrets/. deploy/secrets/" in refused.value.stderr
    assert not (made / lost).exists()


def test_a_volume_that_was_copied_by_hand_from_another_machine_is_seen(tmp_path: Path) -> None:
    make_secrets(tmp_path, copied="old_outbox_postgres-data")
    (tmp_path / "secrets/postgres_password").unlink()
    with pytest.raises(subprocess.CalledProcessError) as refused:
        make_secrets(tmp_path, copied="outbox_postgres-data")
    assert refused.value.returncode == 2
    assert "the volume outbox_postgres-data holds data" in refused.value.stderr


def test_nothing_is_made_while_the_engine_cannot_say_whether_data_is_there(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        make_secrets(tmp_path, answers=False)
    assert refused.value.returncode == 2
    assert "start Docker" in refused.value.stderr
    assert list((tmp_path / "secrets").iterdir()) == []
    made = make_secrets(tmp_path)
    assert make_secrets(tmp_path, answers=False) == made, "all are there: nobody is asked"


def test_the_programs_use_roles_that_may_do_only_their_work(tmp_path: Path) -> None:
    made = make_secrets(tmp_path)
    logins = (made / "logins.sql").read_text()
    for program in ("api", "checker", "reconcile"):
        used = COMPOSE["services"][program]["secrets"][0]
        assert used == {"source": f"{program}_database_url", "target": "database_url"}
        url = urlsplit((made / f"{program}_database_url").read_text())
        assert url.username == f"outbox_{program}"
        assert f"ALTER ROLE {url.username} LOGIN PASSWORD '{url.password}';" in logins
