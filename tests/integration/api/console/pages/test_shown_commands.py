"""The commands that pages show: each runs, and hostile text in them stays one word of a shell."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import httpx2
import pytest

from cli.invocation.exit_codes import ExitCode
from outbox.access import Scope
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.postgres.sessions.connections import Pool
from outbox.settings.environment import process_environment
from tests.fixtures_programs import program
from tests.integration.api.console.fixtures_console import Browser, Page, key_text, logged_in
from tests.integration.api.fixtures_held import hold
from tests.integration.api.fixtures_keys import WITH_KEYS, token
from tests.integration.api.fixtures_service import HALVES, prepare_body, settings_for
from tests.integration.api.fixtures_sockets import Listener, listening
from tests.integration.postgres.reconciliation.fixtures_stored_runs import make_run

pytestmark = pytest.mark.postgres

HOSTILE = "invoice;$(touch owned)'`id`"
TWICE = "cust 58; $(touch owned)"
PAGES = (
    "",
    "?q=state:published+age:<1h+checks:>=0",
    "?q=nothing-has-this",
    "overview",
    "parked",
    "groups",
    "groups/billing",
    "publishing",
    "reconciliations",
    "reconciliations/one?kind=missing",
    "reconciliations/one?kind=missing&topic=a+%26+%27b&hour=2026-01-01T10:00:00Z",
    "audit?operator=-x&producer_group=billing&at_from=2026-09-21T14:00:00Z",
    "keys",
    "system",
)
REPORTS = ("outbox doctor", "outbox group test billing")
"""Nothing answers at the addresses of the broker and of the check endpoint."""
ACTIONS = (
    ("state:prepared checks:>=0", "recheck"),
    ("state:prepared checks:>=0", "commit"),
    ("state:committed", "release"),
    ("state:committed", "drop"),
)


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


@pytest.fixture
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the command that pages name, and nothing else."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "outbox").symlink_to(program("outbox"))
    return folder


@pytest.mark.deep
async def test_each_command_of_each_page_runs(
    database_url: str, pool: Pool, tmp_path: Path, programs: Path, subtests: pytest.Subtests
) -> None:
    PostgresRunStore(database_url).save(make_run("one", "f1", totals={"missing": 1}))
    key = await token(pool, Scope.ADMIN)
    async with listening(settings_for(database_url, **WITH_KEYS), headers=key) as listener:
        found: dict[str, str] = {}
        async for page in every_page(listener, pool, key_text(key)):
            shown = commands(page)
            assert shown, page.path
            found |= dict.fromkeys(shown, page.path)
        environment = {
            "OUTBOX_API_URL": str(listener.client.base_url).rstrip("/"),
            "OUTBOX_API_KEY": key_text(key),
            "OUTBOX_DATABASE_URL": database_url,
            "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9",
            "PATH": f"{programs}:{process_environment()['PATH']}",
        }
        for command, path in found.items():
            with subtests.test(command, path=path):
                ended = await asyncio.to_thread(pasted, command, tmp_path, environment)
                expected = {ExitCode.ERROR} if command in REPORTS else {ExitCode.OK}
                assert {ended.returncode} == expected, ended.stderr
                assert '"code"' not in ended.stdout
    assert await asyncio.to_thread(os.listdir, tmp_path) == []


async def every_page(listener: Listener, pool: Pool, key: str) -> AsyncIterator[Page]:
    """Yield each page that shows commands, with messages in it."""
    client = listener.client
    await listener.put_group("billing")
    made = [
        (await client.post(HALVES, json=prepare_body(key=TWICE))).json()["message_id"]
        for _ in range(3)
    ]
    await client.post(f"{HALVES}/{made[0]}/end", json={"decision": "COMMIT"})
    await hold(pool, made[0])
    async with httpx2.AsyncClient(base_url=client.base_url, timeout=60) as visitor:
        browser = Browser(visitor)
        await browser.log_in(key)
        for path in (*PAGES, f"messages/{made[1]}?payload=1"):
            yield await browser.get(f"/ui/{path}")
        yield Page(await visitor.get("/ui/", params={"q": f'"{TWICE}"'}))
        at = "/ui/groups/billing"
        yield await browser.send(await browser.get(at), f"{at}/test")
        for q, action in ACTIONS:
            listed = Page(await visitor.get("/ui/", params={"q": q}))
            planned = await browser.send(listed, "/ui/bulk-actions/plan", action=action)
            yield planned
        for state, action, message in (("prepared", "recheck", 1), ("committed", "release", 0)):
            listed = Page(await visitor.get("/ui/"))
            form = f"/ui/bulk-actions/plan#pick-{state}"
            yield await browser.send(listed, form, action=action, message=[made[message]])
        yield await browser.send(planned, "/ui/bulk-actions", reason="it is gone")


def commands(page: Page) -> list[str]:
    """Return the commands at the foot of a page; fails if its calls are missing."""
    foot = page.html.partition("The same over REST and on the command line")[2]
    shown = [unescape(each) for each in re.findall(r"<code>(.*?)</code></p>", foot, re.DOTALL)]
    assert [each for each in shown if re.match(r"(GET|POST) /", each)], page.text
    return [each for each in shown if re.match(r"(outbox|curl) ", each)]


def pasted(
    command: str, folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command as a shell does."""
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**process_environment(), **environment},
        capture_output=True,
        text=True,
        timeout=180,
    )
