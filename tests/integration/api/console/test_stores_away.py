"""The console while PostgreSQL is away, or lacks a migration, or metrics have another address."""

from __future__ import annotations

import pytest

from outbox.postgres.sessions import connections
from tests.integration.api.console.fixtures_console import browsing
from tests.integration.api.fixtures_service import running, settings_for

pytestmark = pytest.mark.postgres


async def test_without_postgresql_a_page_names_what_to_do_and_tries_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "WAIT_SECONDS", 0.5)
    settings = settings_for("postgresql://nobody@127.0.0.1:1/none")
    async with running(settings) as service, browsing(service) as browser:
        page = await browser.get("/ui/parked")
        assert page.status == 503
        assert "See that it runs" in page.text
        assert "docker compose" not in page.text
        assert "outbox doctor" in page.text
        assert '<meta http-equiv="refresh" content="5">' in page.html
        assert "result is unknown" not in page.text
