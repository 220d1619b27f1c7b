"""The embedded PostgreSQL: as root and as an ordinary user, across stops and crashes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from devservers.artifacts import PROJECT_ROOT
from devservers.errors import ArtifactsMissing, ServerFailed
from devservers.postgres import EmbeddedPostgres
from devservers.unprivileged import unprivileged_user

pytestmark = [pytest.mark.postgres, pytest.mark.deep]


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    """A server that these tests may kill, and that the last of them stops."""
    server = EmbeddedPostgres(tmp_path_factory.mktemp("own") / "postgres")
    server.start()
    yield server
    server.kill()
    server.erase()


def ask(server: EmbeddedPostgres, question: str) -> object:
    with psycopg.connect(server.database_url) as connection:
        row = connection.execute(question.encode()).fetchone()
    return row[0] if row else None


def test_it_listens_on_loopback_only_and_has_no_unix_socket(own_server: EmbeddedPostgres) -> None:
    assert ask(own_server, "SHOW listen_addresses") == "127.0.0.1"
    assert ask(own_server, "SHOW unix_socket_directories") == ""


def test_a_connection_without_the_password_is_refused(own_server: EmbeddedPostgres) -> None:
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(f"postgresql://outbox:guess@127.0.0.1:{own_server.port}/postgres")


def test_only_the_owner_can_read_the_password(own_server: EmbeddedPostgres) -> None:
    assert (own_server.home / "password").stat().st_mode & 0o077 == 0


def test_a_folder_without_a_server_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactsMissing, match=str(tmp_path)):
        EmbeddedPostgres(tmp_path / "postgres", binaries=tmp_path).start()


def test_a_failed_start_is_explained_in_one_line(own_server: EmbeddedPostgres) -> None:
    own_server.stop()
    (own_server.home / "data" / "postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(ServerFailed) as refusal:
        own_server.start()
    assert "\n" not in str(refusal.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="these tests already run as an ordinary user")
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no interpreter for everybody")
def test_an_ordinary_user_runs_it_too() -> None:
    """In a process of that user, which may be unable to enter this interpreter's folder."""
    user = unprivileged_user()
    assert user is not None
    program = f"""
import os, sys, tempfile
from pathlib import Path
import psycopg
from devservers.postgres import EmbeddedPostgres
sys.executable = "/usr/bin/python3"
os.setgroups([]); os.setgid({user.gid}); os.setuid({user.uid})
with tempfile.TemporaryDirectory() as folder:
    server = EmbeddedPostgres(Path(folder) / "postgres")
    server.start()
    with psycopg.connect(server.database_url) as connection:
        print(connection.execute("SELECT 'as ' || current_user").fetchone()[0])
    server.stop()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=PROJECT_ROOT, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("as outbox\n", "")
