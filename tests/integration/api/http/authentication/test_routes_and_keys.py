"""Every route of the contract is closed to a key without its scope, and to a key of other groups.

The routes come from the OpenAPI document: a route that is not in the table fails the first test.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import LiteralString
from urllib.parse import urlsplit

import pytest

from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from outbox.access import Scope
from outbox.kafka.progress_topic import ensure_progress_topic
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.postgres.sessions.connections import Pool, make_pool
from tests.fixtures_databases import drop_database, make_database
from tests.integration.api.fixtures_held import hold
from tests.integration.api.fixtures_kafka_log import KafkaLog
from tests.integration.api.fixtures_keys import guarded, token
from tests.integration.api.fixtures_rows import CHECKED, select
from tests.integration.api.fixtures_service import HALVES, Service, prepare_body
from tests.integration.api.http.authentication.fixtures_routes import (
    BULK_FILTERS,
    CURSORS,
    FINDS_NOTHING,
    FIRST,
    KEYED,
    NOTHING,
    PLACES,
    PUBLIC,
    QUERIES,
    QUERY_VALUES,
    ROUTES,
    TRACE,
    WHO,
    RouteObjects,
    call,
)
from tests.integration.postgres.reconciliation.fixtures_stored_runs import make_run

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

STORED: LiteralString = """
SELECT (SELECT count(*) FROM outbox.half_message), (SELECT count(*) FROM outbox.op_message),
    (SELECT count(*) FROM outbox.audit_log), (SELECT count(*) FROM outbox.recheck),
    (SELECT count(*) FROM outbox.bulk_action),
    (SELECT array_agg(version ORDER BY id) FROM outbox.producer_group),
    (SELECT count(*) FROM outbox.api_key WHERE revoked_at IS NULL)
"""
"""What a refused request must not change."""
READING = [operation for operation in ROUTES if PLACES[operation][0] == "GET"]
"""They share one service; each of the others changes what it is called for."""
CHANGING = [operation for operation in ROUTES if operation not in READING]


@pytest.fixture(scope="module")
def lived(
    postgres_server: EmbeddedPostgres, template_database: str, kafka_broker: EmbeddedKafka
) -> Iterator[tuple[str, RouteObjects]]:
    """Yield a database with the objects, of which each test has a copy, and the objects."""
    servers, log = kafka_broker.bootstrap_servers, KafkaLog(kafka_broker.bootstrap_servers)
    ensure_progress_topic(servers)
    url = make_database(postgres_server.database_url, template_database)

    async def live() -> RouteObjects:
        async with (
            make_pool(url, "test", pool_max=2) as pool,
            administered(url, pool, servers) as it,
        ):
            return await objects_of_theirs(it, pool, url, log)

    with ThreadPoolExecutor(1) as beside:  # the first test may have its loop already
        objects = beside.submit(asyncio.run, live()).result()
    yield url, objects
    drop_database(postgres_server.database_url, url)


@pytest.fixture
def theirs(lived: tuple[str, RouteObjects]) -> RouteObjects:
    """Return objects of the group ``theirs``, and a run of the reconciliation."""
    return lived[1]


@pytest.fixture
def database_url(
    postgres_server: EmbeddedPostgres, lived: tuple[str, RouteObjects]
) -> Iterator[str]:
    """Yield the URL of a fresh database with the objects."""
    source = urlsplit(lived[0]).path.removeprefix("/")
    url = make_database(postgres_server.database_url, source)
    yield url
    drop_database(postgres_server.database_url, url)


@pytest.fixture
async def keyed(
    database_url: str, pool: Pool, kafka_broker: EmbeddedKafka
) -> AsyncIterator[Service]:
    """Yield the service with keys, and the client of an administrator."""
    async with administered(database_url, pool, kafka_broker.bootstrap_servers) as service:
        yield service


@asynccontextmanager
async def administered(database_url: str, pool: Pool, servers: str) -> AsyncIterator[Service]:
    """Run the service with keys; its client is an administrator's."""
    async with guarded(database_url, kafka_bootstrap_servers=servers) as service:
        service.client.headers.update(await token(pool, Scope.ADMIN))
        yield service


async def objects_of_theirs(
    keyed: Service, pool: Pool, database_url: str, kafka_log: KafkaLog
) -> RouteObjects:
    """Let the group ``theirs`` have its objects, and the installation a reconciliation."""
    client, run = keyed.client, "run-of-all"
    for group in ("mine", "theirs", "theirs-idle"):
        await keyed.put_group(group)
    traced = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
    prepared = prepare_body(producer_group="theirs", transaction_id="t-theirs", **KEYED)
    message = (await client.post(HALVES, json=prepared, headers=traced)).json()["message_id"]
    body = {"name": "n", "producer_groups": ["theirs"], "scopes": ["messages:read"]}
    key = (await client.post("/v1/api-keys", json=body)).json()["key_id"]
    own = {**body, "scopes": ["admin"]}
    owner = (await client.post("/v1/api-keys", json=own)).json()
    ordered = {**WHO, "action": "recheck", "filter": {"transaction_id": "t-theirs"}}
    headers = {"Authorization": f"Bearer {owner['api_key']}"}
    action = (await client.post("/v1/bulk-actions", json=ordered, headers=headers)).json()["id"]
    PostgresRunStore(database_url).save(make_run(run, "a"))
    await until_done(keyed, action)
    held = await keyed.prepared_id(producer_group="theirs")
    await keyed.end(held, "COMMIT")
    await hold(pool, held)
    return RouteObjects(
        group="theirs",
        idle_group="theirs-idle",
        message=message,
        held=held,
        record=kafka_log.write(message),
        transaction="t-theirs",
        key=key,
        owner=owner["key_id"],
        action=action,
        run=run,
    )


async def until_done(keyed: Service, action: str) -> None:
    """Wait for a bulk action, so that it changes nothing while the test looks."""
    owner = "/v1/bulk-actions"
    while (await keyed.client.get(f"{owner}/{action}")).json()["status"] != "finished":
        pass


def test_the_table_has_every_route_of_the_contract() -> None:
    assert ROUTES.keys() | PUBLIC == PLACES.keys()
    assert not ROUTES.keys() & PUBLIC


async def test_no_route_answers_without_a_key(
    keyed: Service, theirs: RouteObjects, pool: Pool, subtests: pytest.Subtests
) -> None:
    before = await select(pool, STORED)
    del keyed.client.headers["Authorization"]
    for operation in ROUTES:
        with subtests.test(operation):
            answer = await call(keyed, operation, theirs, {})
            assert answer.status_code == 401, answer.text
            assert answer.json()["code"] == "unauthenticated"
            assert theirs.named_in(answer.text) == []
    assert await select(pool, STORED) == before


@pytest.mark.parametrize("operation", CHANGING)
async def test_a_route_needs_its_scope_and_hides_the_objects_of_another_group(
    keyed: Service, theirs: RouteObjects, pool: Pool, operation: str
) -> None:
    """They look like missing ones."""
    await assert_guarded(keyed, theirs, pool, operation)


async def test_a_route_that_only_reads_needs_and_hides_the_same(
    keyed: Service, theirs: RouteObjects, pool: Pool, subtests: pytest.Subtests
) -> None:
    for operation in READING:
        with subtests.test(operation):
            await assert_guarded(keyed, theirs, pool, operation)


async def assert_guarded(keyed: Service, theirs: RouteObjects, pool: Pool, operation: str) -> None:
    """Call the route without its scope, for another group, and as the owner of the objects."""
    route = ROUTES[operation]
    whose = ("*",) if route.of_all_groups else ("theirs", "theirs-idle")
    others = await token(pool, *(each for each in Scope if each not in (route.scope, Scope.ADMIN)))
    foreign = await token(pool, *Scope, groups=("mine",))
    owner = await token(pool, route.scope, groups=whose)
    before = await select(pool, STORED)
    refused = await call(keyed, operation, theirs, others)
    assert refused.status_code == 403, refused.text
    assert refused.json()["code"] == "scope-missing"
    assert route.scope in refused.json()["detail"]
    hidden = await call(keyed, operation, theirs, foreign)
    missing = await call(keyed, operation, NOTHING, foreign)
    said = hidden.text.replace(theirs.group, NOTHING.group)  # a refusal may repeat the asked name
    assert (hidden.status_code, said) == (missing.status_code, missing.text)
    assert theirs.named_in(said) == []
    assert await select(pool, STORED) == before
    shown = await call(keyed, operation, theirs, owner)
    assert shown.status_code < 300, shown.text
    if route.shows is not None:
        assert route.shows(theirs) in shown.text
        assert route.shows(theirs) not in said
    if "Batch" in operation:
        assert {item["status"] for item in hidden.json()["items"]} == {404}
        assert {item["status"] for item in shown.json()["items"]} <= {200, 201}
    elif route.shows is None:
        assert hidden.status_code in (403, 404)


async def test_no_query_shows_the_objects_of_another_group(
    keyed: Service, theirs: RouteObjects, pool: Pool, subtests: pytest.Subtests
) -> None:
    """Every filter and every cursor of the contract, with a value that finds them."""
    await select(pool, CHECKED, 7, 1, "unknown")
    foreign = await token(pool, *Scope, groups=("mine",))
    owner = await token(pool, *Scope, groups=("theirs",))
    found = {name: value(theirs) for name, value in QUERY_VALUES.items()}
    for operation, names in QUERIES.items():
        values = {**found, "cursor": CURSORS.get(operation, FIRST)}
        with subtests.test(operation):
            for name in names:
                hidden = await call(keyed, operation, theirs, foreign, {name: values[name]})
                assert theirs.named_in(hidden.text) == [], name
            if ROUTES[operation].of_all_groups:
                continue
            for name in set(names) - FINDS_NOTHING.get(operation, set()):
                shown = await call(keyed, operation, theirs, owner, {name: values[name]})
                assert theirs.named_in(shown.text) != [], (name, shown.text)


@pytest.mark.parametrize(("action", "state"), [("recheck", "PREPARED"), ("drop_held", "COMMITTED")])
async def test_no_filter_of_a_bulk_action_matches_a_message_of_another_group(
    keyed: Service, theirs: RouteObjects, pool: Pool, action: str, state: str
) -> None:
    await select(pool, CHECKED, 7, 1, "unknown")
    foreign = await token(pool, *Scope, groups=("mine",))
    owner = await token(pool, *Scope, groups=("theirs",))
    found: dict[str, list[str]] = {"foreign": [], "owner": []}
    own: dict[str, object] = {"state": state, "message_ids": [theirs.message, theirs.held]}
    for name in BULK_FILTERS:
        value = own[name] if name in own else QUERY_VALUES[name](theirs)
        order = {**WHO, "action": action, "filter": {name: value}, "dry_run": True}
        for whose, key in (("foreign", foreign), ("owner", owner)):
            answer = await keyed.client.post("/v1/bulk-actions", json=order, headers=key)
            assert answer.status_code == 200, answer.text
            found[whose] += [name] * answer.json()["matched"]
    assert found["foreign"] == []
    assert {*own, "producer_group", "topic", "prepared_from"} <= set(found["owner"])
