"""A backup brings everything back, and no new secret is made for data that it could not open."""

from __future__ import annotations

import json
import shutil

from tests.containers.fixtures_page import commands, typed
from tests.containers.fixtures_stack import Stack

MAKE_BACKUP, RESTORE = commands("Backup")
(MAKE_SECRETS,) = commands("Secrets")
GROUP = {"check_url": "http://host.docker.internal:9000/check"}


def test_lost_secrets_are_refused_new_ones_open_the_data_and_the_backup_brings_everything_back(
    stack: Stack,
) -> None:
    with stack.http() as http:
        assert http.put("/v1/producer-groups/saved", json=GROUP).status_code == 201
    typed(stack, MAKE_BACKUP)
    (backup,) = (stack.folder / "backups").iterdir()
    assert all(stack.is_healthy(each) for each in ("postgres", "kafka", "api", "checker"))

    shutil.rmtree(stack.folder / "deploy/secrets")
    said = stack.run("make", "up", check=False)
    assert "postgres_password is missing" in said
    assert f"cp -a backups/{backup.name}/secrets/. deploy/secrets/" in said

    typed(stack, MAKE_SECRETS)
    key = json.loads(typed(stack, commands("Start")[0].splitlines()[1]))["api_key"]
    with stack.http() as http:
        http.headers["authorization"] = f"Bearer {key}"
        assert http.get("/v1/producer-groups/saved").status_code == 200

    typed(stack, RESTORE, BACKUP=f"backups/{backup.name}")
    with stack.http() as http:
        assert http.get("/v1/producer-groups/saved").status_code == 200
