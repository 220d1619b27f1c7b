"""PostgreSQL answers reads and refuses writes: the log, the probe and the doctor say so."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from devservers.postgres import EmbeddedPostgres
from devservers.unprivileged import unprivileged_user
from tests.integration.api.fixtures_service import Service, running, settings_for

pytestmark = pytest.mark.postgres

DISK = "64m"
TURN_AWAY = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{0}'"


class Refusing:
    """A database that refuses writes from ``begin`` to ``end``, with these words."""

    def __init__(self, words: str, begin: Callable[[], object], end: Callable[[], object]) -> None:
        self.words, self.begin, self.end = words, begin, end


@pytest.fixture
def run(postgres_server: EmbeddedPostgres) -> Callable[[str], object]:
    """Return what runs a statement as the owner of the server."""

    def execute(statement: str) -> object:
        with psycopg.connect(postgres_server.database_url, autocommit=True) as connection:
            return connection.execute(statement.encode())

    return execute


@pytest.fixture
def full_disk(
    database_url: str, run: Callable[[str], object], tmp_path: Path
) -> Iterator[Refusing]:
    """Yield the database on a disk of its own; a file takes what is left of it."""
    name, user = urlsplit(database_url).path.lstrip("/"), unprivileged_user()
    folder = Path("/var/tmp", f"outbox-small-disk-{os.getpid()}")
    folder.mkdir()
    with ExitStack() as undo:
        undo.callback(folder.rmdir)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
        if user is None or subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("only root may mount a small disk, and not in every container")
        undo.callback(subprocess.run, ["umount", str(folder)], check=True)
        space, ballast = folder / "space", folder / "ballast"
        user.take(space)
        run(f"CREATE TABLESPACE small LOCATION '{space}'")
        undo.callback(run, "DROP TABLESPACE small")
        run(f"ALTER DATABASE {name} SET TABLESPACE small")
        undo.callback(run, f"ALTER DATABASE {name} SET TABLESPACE pg_default")
        undo.callback(run, TURN_AWAY.format(name))
        fill = ["dd", "if=/dev/zero", f"of={ballast}", "bs=8k"]
        yield Refusing(
            "No space left on device",
            lambda: subprocess.run(fill, capture_output=True, check=False),
            ballast.unlink,
        )


@pytest.fixture
def read_only(database_url: str, run: Callable[[str], object]) -> Refusing:
    """Return the database that an administrator makes read-only."""
    name = urlsplit(database_url).path.lstrip("/")

    def change(to: str) -> None:
        run(f"ALTER DATABASE {name} {to} default_transaction_read_only{' = on' * (to == 'SET')}")
        run(TURN_AWAY.format(name))

    return Refusing("read-only transaction", lambda: change("SET"), lambda: change("RESET"))


@pytest.mark.parametrize("cause", ["full_disk", "read_only"])
async def test_refused_writes_show_in_the_log_the_probe_and_the_doctor(
    cause: str,
    request: pytest.FixtureRequest,
    database_url: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    refusing: Refusing = request.getfixturevalue(cause)
    async with running(settings_for(database_url)) as service:
        await service.put_group()
        await service.prepared_id()
        refusing.begin()
        await until_answered(service, 503)
        assert {(await service.prepare(value="x" * 100_000)).status_code for _ in range(5)} == {503}
        checks = (await service.client.get("/readyz")).json()["checks"]
        assert refusing.words in checks["postgres"]
        found = (await service.client.get("/v1/doctor")).json()["data"]
        seen = {each["check"]: (each["verdict"], each["detail"]) for each in found}
        for check in ("postgres writes", "prepares and ends"):
            assert seen[check][0] == "failed"
            assert refusing.words in seen[check][1]
        said = [line for line in lines(capsys) if refusing.words in line]
        assert ["dependency_lost" in line for line in said] == [True]
        refusing.end()
        await until_answered(service, 201)
        assert (await service.client.get("/readyz")).json()["checks"]["postgres"] == "ok"
        assert ["dependency_back" in line for line in lines(capsys)] == [True]


async def until_answered(service: Service, status: int) -> None:
    """Prepare messages that need room until they are answered with this status."""
    for _ in range(1000):
        if (await service.prepare(value="x" * 100_000)).status_code == status:
            return
    pytest.fail(f"no prepare was answered {status}")


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the new lines of the log about flushes."""
    return [line for line in "".join(capsys.readouterr()).splitlines() if "flush=" in line]
