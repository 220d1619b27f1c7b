"""The Spring Boot starter: the example sends an order, dies, and heals after its restart."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import httpx2
import psycopg
import pytest

from devservers.loopback import free_ports
from tests.e2e.fixtures_service import Service
from tests.e2e.languages.fixtures_languages import (
    LANGUAGES,
    new_database,
    register,
    serving,
)
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

(JAVA,) = (each for each in LANGUAGES if each.name == "java")
GROUP, TOPIC = "spring-shop", "orders.placed"
START = [
    *("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
    *("-cp", "target/classes:target/dependency/*", "com.example.ShopApplication"),
]
WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ 'shop_order'"


class Shop:
    """The built example, with a database, a group and a port."""

    def __init__(self, service: Service, place: Path) -> None:
        (self.port,) = free_ports(1)
        self.place = place
        self.url = f"http://127.0.0.1:{self.port}"
        database = new_database(service, "spring_shop")
        self.database_url = database["DATABASE_URL"]
        self.secret = register(service, GROUP, f"{self.url}/outbox/check")
        self.environment = {
            "OUTBOX_API_URL": service.facts()["api_url"],
            "OUTBOX_PRODUCERGROUP": GROUP,
            "OUTBOX_CHECK_SECRET": self.secret,
            "SPRING_DATASOURCE_URL": database["JDBC_URL"],
            "SERVER_PORT": str(self.port),
        }

    def running(self) -> AbstractContextManager[str]:
        """Run it for the block, and then kill it."""
        return serving(START, self.place, self.environment, self.port)

    def order(self, number: int) -> str:
        """Place an order; return the answer."""
        return httpx2.put(f"{self.url}/orders/{number}", timeout=60).raise_for_status().text

    def orders(self) -> list[tuple[object, ...]]:
        """Return what is stored."""
        with psycopg.connect(self.database_url) as connection:
            return connection.execute("SELECT number FROM shop_order ORDER BY 1").fetchall()


@pytest.fixture(scope="module")
def shop(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Build the example with the Java client, or skip and name what is missing."""
    missing = JAVA.missing()
    if missing is not None:
        pytest.skip(f"{missing} is not on this machine")
    example = JAVA.make(tmp_path_factory.getbasetemp(), JAVA.example)
    return Shop(service, example.parent / "spring/example")


def test_an_order_whose_process_is_killed_before_its_commit_is_placed_after_the_restart(
    service: Service, shop: Shop
) -> None:
    with ThreadPoolExecutor(1) as thread:
        with psycopg.connect(shop.database_url) as other, shop.running():
            assert shop.order(1) == "order 1 is stored"
            assert shop.order(1) == "order 1 was stored before"
            other.execute("LOCK TABLE shop_order")
            killed = thread.submit(shop.order, 2)
            wait_for(lambda: service.rows(WAITING))
        with pytest.raises(httpx2.TransportError):
            killed.result()
    listed = {"transaction_id": "order-2"}
    (prepared,) = service.http.get("/v1/half-messages", params=listed).json()["data"]
    assert prepared["state"] == "PREPARED"
    with shop.running():
        assert service.wait_state(prepared["message_id"], "ROLLED_BACK")["decided_by"] == "check"
        assert shop.orders() == [(1,)]
        assert shop.order(2) == "order 2 is stored"
        assert shop.orders() == [(1,), (2,)]
        wait_for(lambda: len(published(service)) == 2)
    assert published(service) == ["order-1", "order-2/2"]


def published(service: Service) -> list[str]:
    """Return the transaction ids of the records."""
    return sorted(dict(each.headers)["outbox_transaction_id"] for each in service.records(TOPIC))
