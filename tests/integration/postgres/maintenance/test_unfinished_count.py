"""How many messages are open is read from a bounded number, and nobody vanishes behind others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest

from benchmarks.load.history import tuples_read
from devservers.postgres import EmbeddedPostgres
from outbox.postgres.maintenance.gauges import SQL, PostgresGauges, Rows
from outbox.postgres.sessions.connections import Pool, connect, make_pool
from outbox.postgres.sessions.reads import read_in_key_order
from tests.fixtures_databases import drop_database, make_database
from tests.integration.postgres.maintenance.fixtures_many_open import (
    BUSY,
    DECIDED,
    FEW,
    MANY,
    OLD_SECONDS,
    QUIET,
    fill,
)

pytestmark = pytest.mark.postgres

COUNTED = 100
BOUNDED = {"most": COUNTED, "all": 16 * COUNTED}
EVERY = {"most": 4 * MANY, "all": 64 * MANY}
MOST_TUPLES = 150 * COUNTED
"""Below what is open in all states; some pages of a table, and some look-ups."""
OPEN = {
    "PREPARED": 2 * MANY - DECIDED,
    "PARKED": MANY - DECIDED,
    "HELD": MANY,
    "PLAIN": MANY,
}


@pytest.fixture(scope="module")
def full_database(postgres_server: EmbeddedPostgres, template_database: str) -> Iterator[str]:
    """Yield a database in which very much is open."""
    url = make_database(postgres_server.database_url, template_database)
    with connect(url, "test") as session:
        fill(session)
    yield url
    drop_database(postgres_server.database_url, url)


@pytest.fixture
async def full_pool(full_database: str) -> AsyncIterator[Pool]:
    """Yield a pool of one connection, so that its statistics are complete."""
    async with make_pool(full_database, "test", pool_max=1) as opened:
        yield opened


async def test_the_count_reads_little_of_what_is_open(full_pool: Pool) -> None:
    before = await tuples_read(full_pool)
    async with full_pool.connection() as connection, connection.transaction():
        await read_in_key_order(connection)
        await connection.execute(SQL["unfinished"], BOUNDED)
    assert await tuples_read(full_pool) - before <= MOST_TUPLES


def of(found: tuple[Mapping[str, Rows], object], group: str) -> dict[str, Mapping[str, Any]]:
    """Return what was found of a group in each state."""
    return {
        each["state"]: each for each in found[0]["unfinished"] if each["producer_group"] == group
    }


async def test_a_large_number_is_a_lower_bound_and_the_oldest_is_found(full_pool: Pool) -> None:
    found = of(await PostgresGauges(full_pool, BOUNDED).read(), BUSY)
    for state, number in OPEN.items():
        assert COUNTED <= found[state]["messages"] <= number
        assert found[state]["capped"]
    assert found["PREPARED"]["oldest_age_seconds"] >= OLD_SECONDS


async def test_few_are_counted_beside_many(full_pool: Pool) -> None:
    found = of(await PostgresGauges(full_pool, BOUNDED).read(), QUIET)
    assert {state: found[state]["messages"] for state in ("PREPARED", "PARKED")} == {
        "PREPARED": FEW,
        "PARKED": FEW,
    }


async def test_below_the_bound_each_number_is_exact(full_pool: Pool) -> None:
    found = await PostgresGauges(full_pool, EVERY).read()
    few = {"PREPARED": 2 * FEW, "PARKED": FEW, "HELD": FEW, "PLAIN": FEW}
    assert {state: each["messages"] for state, each in of(found, BUSY).items()} == OPEN
    assert {state: each["messages"] for state, each in of(found, QUIET).items()} == few
    ages = {state: each["oldest_age_seconds"] for state, each in of(found, BUSY).items()}
    assert min(ages.values()) >= OLD_SECONDS
