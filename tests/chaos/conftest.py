"""A separate broker behind a link: its clients know only the address of the link."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from devservers.kafka import EmbeddedKafka
from devservers.loopback import LOOPBACK, free_ports
from tests.fixtures_link import Link, link_to


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedBroker:
    """A broker and the link to it."""

    servers: str
    link: Link


@pytest.fixture(scope="package")
def broker_behind_link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LinkedBroker]:
    """Yield a running broker whose advertised address is the link's."""
    (port,) = free_ports(1)
    with link_to(port) as link:
        folder = tmp_path_factory.mktemp("servers") / "kafka"
        servers = f"{LOOPBACK}:{link.port}"
        listener = {"advertised.listeners": f"BROKER://{servers}"}
        broker = EmbeddedKafka(folder, port=port, settings=listener)
        broker.start()
        try:
            yield LinkedBroker(servers=servers, link=link)
        finally:
            broker.stop()
            broker.erase()


@pytest.fixture
def linked(broker_behind_link: LinkedBroker) -> Iterator[LinkedBroker]:
    """Yield that broker; its link is healed after the test."""
    yield broker_behind_link
    broker_behind_link.link.heal()
