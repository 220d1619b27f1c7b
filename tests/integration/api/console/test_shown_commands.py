"""The commands that pages show are pasted into a shell: hostile text in them stays one word."""

from __future__ import annotations

import re
import shlex
from html import unescape

import pytest

from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import Page, logged_in

pytestmark = pytest.mark.postgres

HOSTILE = "invoice;$(touch owned)'`id`"


@pytest.mark.parametrize(
    ("action", "command"),
    [("recheck", "outbox message recheck"), ("rollback", "outbox message force-end")],
)
async def test_a_transaction_id_of_a_tenant_runs_nothing_in_the_operators_shell(
    database_url: str, pool: Pool, action: str, command: str
) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (service, browser):
        await service.prepared_id(transaction_id=HOSTILE)
        asked = {"q": f'state:prepared transaction:"{HOSTILE}"'}
        found = Page(await browser.client.get("/ui/", params=asked))
        planned = await browser.send(found, "/ui/bulk-actions/plan", action=action)
    lists, does = (
        words(page, start) for page, start in ((found, "outbox message list"), (planned, command))
    )
    assert HOSTILE in lists
    assert f"transaction_id={HOSTILE}" in does


def words(page: Page, start: str) -> list[str]:
    """Return the words that a shell makes of the page's command."""
    shown = re.search(rf"<code[^>]*>({re.escape(start)} .*?)</code>", page.html, re.DOTALL)
    assert shown is not None, page.text
    return shlex.split(unescape(shown[1]))
