"""`sslmode=verify-full` in the address: an API's session is encrypted, or there is none."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from devservers.postgres import EmbeddedPostgres
from devservers.unprivileged import reachable, unprivileged_user
from outbox.postgres.sessions.connections import connect
from tests.fixtures_certificates import CertificateAuthority
from tests.fixtures_paths import PROJECT

pytestmark = pytest.mark.postgres

PAGE = (PROJECT / "docs/security.md").read_text("utf-8")
ENCRYPTED = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


@pytest.fixture(scope="module")
def folder(servers_dir: Path) -> Path:
    """Return a folder that PostgreSQL's user can enter."""
    return reachable(servers_dir / "tls", unprivileged_user())


@pytest.fixture(scope="module")
def authority(folder: Path) -> CertificateAuthority:
    return CertificateAuthority(folder / "authority")


@pytest.fixture(scope="module")
def server(folder: Path, authority: CertificateAuthority) -> Iterator[EmbeddedPostgres]:
    """Yield a server with a certificate for 127.0.0.1."""
    certificate, key = authority.sign("127.0.0.1")
    user = unprivileged_user()
    if user is not None:
        shutil.chown(key, user.uid, user.gid)
    settings = {"ssl": "on", "ssl_cert_file": str(certificate), "ssl_key_file": str(key)}
    made = EmbeddedPostgres(folder / "postgres", settings=settings)
    made.start()
    yield made
    made.stop()
    made.erase()


def address(server: EmbeddedPostgres, authority: CertificateAuthority) -> str:
    """Return the server's address, in the form of docs/security.md."""
    (parameters,) = re.findall(r"outbox\?(sslmode=.*&sslrootcert=)", PAGE)
    return f"{server.database_url}?{parameters}{authority.certificate}"


def test_a_session_is_encrypted_and_its_server_is_verified(
    server: EmbeddedPostgres, authority: CertificateAuthority
) -> None:
    with connect(address(server, authority), "api") as session:
        assert session.execute(ENCRYPTED).fetchone() == (True,)


def test_a_server_with_another_certificate_gets_no_session(
    server: EmbeddedPostgres, folder: Path
) -> None:
    stranger = CertificateAuthority(folder / "stranger")
    with pytest.raises(psycopg.OperationalError, match="SSL error"):
        connect(address(server, stranger), "api")
