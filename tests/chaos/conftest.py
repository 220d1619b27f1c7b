"""A separate broker behind a proxy: its clients know only the address of the link."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from chaos.proxies.proxy_client import ProxyClient, RemoteLink
from devservers.kafka import EmbeddedKafka
from devservers.ports import free_ports


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxiedBroker:
    """A broker and the link to it."""

    broker: EmbeddedKafka
    link: RemoteLink


@pytest.fixture(scope="package")
def proxies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyClient]:
    """Yield the proxies' process."""
    with ProxyClient(tmp_path_factory.mktemp("proxies") / "proxies.log") as opened:
        yield opened


@pytest.fixture(scope="package")
def broker_behind_proxy(
    tmp_path_factory: pytest.TempPathFactory, proxies: ProxyClient
) -> Iterator[ProxiedBroker]:
    """Yield a running broker whose advertised address is the proxy's."""
    (port,) = free_ports(1)
    link = proxies.open("kafka", "kafka", port)
    broker = EmbeddedKafka(
        tmp_path_factory.mktemp("servers") / "kafka", port=port, advertised_port=link.port
    )
    broker.start()
    try:
        yield ProxiedBroker(broker=broker, link=link)
    finally:
        broker.stop()
        broker.erase()


@pytest.fixture
def proxied(broker_behind_proxy: ProxiedBroker) -> Iterator[ProxiedBroker]:
    """Yield the proxied broker; its link is healed after the test."""
    yield broker_behind_proxy
    broker_behind_proxy.link.heal()
