"""PostgreSQL answers reads and refuses writes: the log, the probe and the doctor say so."""

from __future__ import annotations

from urllib.parse import urlsplit

import psycopg
import pytest

from devservers.postgres import EmbeddedPostgres
from tests.integration.api.fixtures_service import Service, running, settings_for

pytestmark = pytest.mark.postgres

TURN_AWAY = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{0}'"
READ_ONLY = "ALTER DATABASE {0} SET default_transaction_read_only = on"
WRITABLE = "ALTER DATABASE {0} RESET default_transaction_read_only"
REFUSAL = "read-only transaction"


def change(server: EmbeddedPostgres, database_url: str, how: str) -> None:
    """Change the database as an administrator does, and end its sessions."""
    name = urlsplit(database_url).path.lstrip("/")
    with psycopg.connect(server.database_url, autocommit=True) as connection:
        for statement in (how, TURN_AWAY):
            connection.execute(statement.format(name).encode())


async def test_refused_writes_show_in_the_log_the_probe_and_the_doctor(
    database_url: str, postgres_server: EmbeddedPostgres, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(settings_for(database_url)) as service:
        await service.put_group()
        await service.prepared_id()
        change(postgres_server, database_url, READ_ONLY)
        await until_answered(service, 503)
        assert {(await service.prepare()).status_code for _ in range(5)} == {503}
        checks = (await service.client.get("/readyz")).json()["checks"]
        assert REFUSAL in checks["postgres"]
        found = (await service.client.get("/v1/doctor")).json()["data"]
        seen = {each["check"]: (each["verdict"], each["detail"]) for each in found}
        for check in ("postgres writes", "prepares and ends"):
            assert seen[check][0] == "failed"
            assert REFUSAL in seen[check][1]
        said = [line for line in lines(capsys) if REFUSAL in line]
        assert ["dependency_lost" in line for line in said] == [True]
        change(postgres_server, database_url, WRITABLE)
        await until_answered(service, 201)
        assert (await service.client.get("/readyz")).json()["checks"]["postgres"] == "ok"
        assert ["dependency_back" in line for line in lines(capsys)] == [True]


async def until_answered(service: Service, status: int) -> None:
    """Prepare messages until they are answered with this status."""
    for _ in range(1000):
        if (await service.prepare()).status_code == status:
            return
    pytest.fail(f"no prepare was answered {status}")


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the new lines of the log about flushes."""
    return [line for line in "".join(capsys.readouterr()).splitlines() if "flush=" in line]
