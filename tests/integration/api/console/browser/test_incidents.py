"""From the alert to fixed, in Chromium: eight incidents, each in at most six interactions.

What the console cannot do itself it shows with its cause and the command, and its page returns to
green by itself. One service, one database, one broker and one browser serve the whole module.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx2
import psycopg
import pytest
import pytest_asyncio
import yaml  # type: ignore[import-untyped]

from chaos.servers.small_disk import NoSmallDisk, fill, make_room, small_disk
from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from outbox.access import Scope
from outbox.postgres.sessions.connections import make_pool
from outbox_client import Check, CheckEndpoint, LocalTransactionState
from tests.e2e.fixtures_command import outbox
from tests.fixtures_databases import make_database, migrate
from tests.fixtures_kafka import make_topic
from tests.fixtures_paths import PROJECT
from tests.fixtures_separate_broker import separate_broker
from tests.integration.api.console.browser.fixtures_chromium import PROGRAM
from tests.integration.api.console.browser.fixtures_desk import Desk, log_in
from tests.integration.api.console.fixtures_console import key_text
from tests.integration.api.console.fixtures_overtaken_time import CHECKED, begin_now
from tests.integration.api.fixtures_held import hold
from tests.integration.api.fixtures_keys import WITH_KEYS, token
from tests.integration.api.fixtures_rows import PARK, select
from tests.integration.api.fixtures_service import GROUPS, HALVES, prepare_body, settings_for
from tests.integration.api.fixtures_sockets import listening
from tests.integration.client.checks.fixtures_check_servers import wsgi_server
from tests.integration.kafka.health.fixtures_open_transaction import open_transaction

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.kafka,
    pytest.mark.deep,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(PROGRAM is None, reason="neither chromium nor google-chrome is installed"),
]
MOST: Final = 6
MEGABYTES: Final = 160


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker of this module's own, which an incident may stop."""
    with separate_broker(tmp_path_factory.mktemp("broker"), progress_topic=True) as broker:
        yield broker


@pytest.fixture(scope="module")
def module_database(module_database: str) -> str:
    """Return a database in which nothing waits for a person yet: each page can turn green."""
    with psycopg.connect(module_database, autocommit=True) as connection:
        connection.execute("DELETE FROM outbox.parked_message")
        connection.execute("DELETE FROM outbox.held_record")
    return module_database


@pytest.fixture(scope="module")
def module_brokers(broker: EmbeddedKafka) -> str:
    """Return the address of that broker."""
    return broker.bootstrap_servers


async def from_alert(desk: Desk, name: str, **labels: str) -> None:
    """Open the page that an alert links to."""
    files = (PROJECT / "deploy" / "alerts").glob("*.yml")
    groups = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    [link] = [
        rule["annotations"]["console"]
        for group in groups
        for rule in group["rules"]
        if rule["alert"] == name
    ]
    for label, value in labels.items():
        link = link.replace(f"{{{{ $labels.{label} }}}}", value)
    await desk.open(link.removeprefix("/ui"))


async def shows(desk: Desk, text: str) -> None:
    """Wait until the page shows a text; nobody reloads it."""
    await desk.tab.point_at(1, 1)
    await desk.tab.until(f"document.body.innerText.includes({text!r})")


async def command_on(desk: Desk, begins: str) -> str:
    """Return the command that the page shows."""
    shown = await desk.tab.js(
        "Array.from(document.querySelectorAll('.incident code'), each => each.textContent)"
    )
    return next(str(each) for each in shown if each.startswith(begins))


async def run(desk: Desk, command: str) -> str:
    """Run a command of the page as an operator does; return what it shows only once."""
    words = shlex.split(command)
    assert words[0] == "outbox"
    done = await asyncio.to_thread(
        outbox, *words[1:], OUTBOX_API_URL=desk.origin, OUTBOX_API_KEY=desk.key
    )
    assert done.code == 0, done.err
    texts = [str(each) for each in done.json().values()]
    return next(each for each in texts if each.startswith(("obx2_", "whsec_")))


async def test_dead_producer_its_messages_are_decided(desk: Desk) -> None:
    for _ in range(3):
        await desk.prepare()
    await select(desk.pool, CHECKED, "timeout", None)
    await select(desk.pool, PARK)
    await from_alert(desk, "OutboxParked")
    assert "timeout" in await desk.tab.text()
    await desk.does("td select", "rollback")
    await desk.does("td button")
    await desk.does("#bulk-reason", "the producer is gone for good")
    await desk.does(".danger")
    await begin_now(desk.pool)
    await desk.tab.until("document.body.innerText.includes('finished:')")
    await desk.does("nav a[href='/ui/parked']")
    assert "Nothing is parked." in await desk.tab.text()
    assert desk.interactions <= MOST


async def test_runaway_group_its_checks_are_paused(desk: Desk) -> None:
    await from_alert(desk, "OutboxBreakerOpen", producer_group="billing")
    await desk.does("#reason", "its endpoint is flooded")
    await desk.does("form[action$='/pause'] button")
    assert "paused: its endpoint is flooded" in await desk.tab.text()
    assert desk.interactions <= MOST
    await desk.tab.fill("#reason", "done")
    await desk.tab.click("form[action$='/resume'] button")


async def test_bad_key_its_user_gets_another_one(desk: Desk) -> None:
    asked = {"name": "till 7", "producer_groups": ["billing"], "scopes": ["messages:write"]}
    made = (await desk.listener.client.post("/v1/api-keys", json=asked)).json()
    await desk.listener.client.delete(f"/v1/api-keys/{made['key_id']}")
    assert await prepare_with(desk, made["api_key"]) == 401
    await from_alert(desk, "OutboxOldestPreparedTooOld", producer_group="billing")
    await desk.does("nav a[href='/ui/keys']")
    assert "till 7" in await desk.tab.text()
    assert "revoked" in await desk.tab.text()
    key = await run(desk, await command_on(desk, "outbox key create"))
    assert await prepare_with(desk, key) == 201
    await select(
        desk.pool, "UPDATE outbox.api_key SET refused_at = refused_at - interval '5 minutes'"
    )
    await shows(desk, "Nobody uses a key that has ended.")
    assert desk.interactions <= MOST


async def prepare_with(desk: Desk, key: str) -> int:
    """Prepare with a key; return the status."""
    async with httpx2.AsyncClient(base_url=desk.origin) as client:
        headers = {"Authorization": f"Bearer {key}"}
        return (await client.post(HALVES, json=prepare_body(), headers=headers)).status_code


async def test_poison_record_is_given_up(desk: Desk) -> None:
    message_id = await desk.prepare(key="poison")
    await desk.listener.client.post(f"{HALVES}/{message_id}/end", json={"decision": "COMMIT"})
    await hold(desk.pool, message_id)
    await from_alert(desk, "OutboxHeld")
    assert "MSG_SIZE_TOO_LARGE" in await desk.tab.text()
    await desk.does("#why-1", "the value is broken, the order was sent by hand")
    await desk.does("button[value='drop']")
    assert "The record is given up" in await desk.tab.text()
    assert "Kafka refuses nothing." in await desk.tab.text()
    assert desk.interactions <= MOST


class Undecided:
    """Knows no transaction."""

    def check_local_transaction(self, check: Check, /) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN


async def test_wrong_secret_the_endpoint_gets_the_right_one(desk: Desk) -> None:
    wrong = "whsec_" + "d3Jvbmc" * 6 + "A="
    with CheckEndpoint("till", wrong, Undecided()) as before, wsgi_server(before) as url:
        made = await desk.listener.client.put(f"{GROUPS}/till", json={"check_url": url})
        assert made.status_code == 201, made.text
        await from_alert(desk, "OutboxChecksFailing", producer_group="till")
        await desk.does("form[action$='/test'] button")
        assert "refuses our signature" in await desk.tab.text()
        secret = await run(desk, await command_on(desk, "outbox group rotate-secret"))
    port = urlsplit(url).port or 0
    with CheckEndpoint("till", secret, Undecided()) as after, wsgi_server(after, port):
        await desk.does("form[action$='/test'] button")
        assert "Accepts our signature yes" in await desk.tab.text()
        assert "refuses our signature" not in await desk.tab.text()
    assert desk.interactions <= MOST


async def test_hanging_transaction_is_named_until_its_owner_ends_it(
    desk: Desk, broker: EmbeddedKafka
) -> None:
    topic = make_topic(broker.bootstrap_servers, partitions=1)
    await select(desk.pool, "INSERT INTO outbox.topic (name) VALUES (%s)", topic)
    with open_transaction(broker.bootstrap_servers, topic):
        await from_alert(desk, "OutboxUnconfirmed")
        await shows(desk, "a transaction hangs")
        command = await command_on(desk, "kafka-transactions.sh")
        assert f"--topic {topic} --partition 0" in command
    await shows(desk, "No transaction hangs.")
    assert desk.interactions <= MOST


async def test_broker_down_is_named_until_it_is_back(desk: Desk, broker: EmbeddedKafka) -> None:
    broker.kill()
    try:
        await from_alert(desk, "OutboxPublishSlow")
        await shows(desk, "Kafka does not answer.")
        await desk.does("#cause")
        assert f"{broker.bootstrap_servers}: " in await desk.tab.text()
        assert await command_on(desk, "docker compose") == "docker compose up --detach kafka"
    finally:
        await asyncio.to_thread(broker.start)
    await shows(desk, "1 broker(s)")
    assert desk.interactions <= MOST


@pytest_asyncio.fixture(loop_scope="module")
async def crowded(
    module_desk: Desk, broker: EmbeddedKafka, tmp_path: Path
) -> AsyncIterator[tuple[Desk, Path]]:
    """Yield the operator at a service whose PostgreSQL has a small disk, and that disk."""
    server = EmbeddedPostgres(tmp_path / "postgres", settings={"max_wal_size": "32MB"})
    try:
        with small_disk(server.home, MEGABYTES):
            async with at_server(module_desk, server, broker) as desk:
                yield desk, server.home
    except NoSmallDisk as error:
        pytest.skip(str(error))


@asynccontextmanager
async def at_server(
    desk: Desk, server: EmbeddedPostgres, broker: EmbeddedKafka
) -> AsyncIterator[Desk]:
    """Start a database server, and seat the operator before a service on it."""
    await asyncio.to_thread(server.start)
    try:
        url = make_database(server.database_url, None)
        await asyncio.to_thread(migrate, url)
        given = {"kafka_bootstrap_servers": broker.bootstrap_servers, **WITH_KEYS}
        async with make_pool(url, "test", pool_max=2) as pool:
            admin = await token(pool, Scope.ADMIN)
            async with listening(settings_for(url, **given), headers=admin) as listener:
                await listener.put_group("billing")
                origin = f"http://127.0.0.1:{listener.port}"
                seated = Desk(desk.tab, listener, pool, key_text(admin), origin)
                await log_in(seated)
                yield seated
    finally:
        server.stop()


async def test_full_disk_is_named_until_there_is_room(crowded: tuple[Desk, Path]) -> None:
    desk, disk = crowded
    fill(disk)
    await from_alert(desk, "OutboxCheckerSilent")
    await shows(desk, "postgres writes: failed")
    assert "No space left on device" in await desk.tab.text()
    assert (await command_on(desk, "df")).startswith("df -h ")
    make_room(disk)
    await desk.tab.until("!document.body.innerText.includes('No space left on device')")
    await desk.prepare()
    assert desk.interactions <= MOST
