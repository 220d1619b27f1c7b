"""Metrics on an address of their own."""

from __future__ import annotations

import urllib.request

import pytest

from devservers.loopback import free_ports
from outbox.errors import ConfigurationError
from outbox.telemetry.metrics import Metrics
from outbox.telemetry.metrics_server import metrics_server

SETTING = "OUTBOX_METRICS_BIND"


def page(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
        text: str = answer.read().decode()
    return text


def test_the_page_is_served_and_the_address_is_free_afterwards() -> None:
    (port,) = free_ports(1)
    metrics = Metrics()
    metrics.show_version()
    for address in (f"127.0.0.1:{port}", f"127.0.0.1:{port}"):
        with metrics_server(SETTING, address, metrics.registry):
            assert "outbox_build_info{" in page(address)


def test_an_address_that_cannot_be_bound_is_named_with_its_setting() -> None:
    (port,) = free_ports(1)
    address, metrics = f"127.0.0.1:{port}", Metrics().registry
    with metrics_server(SETTING, address, metrics):
        for taken in (address, "127.0.0.1:x", "127.0.0.1:99999"):
            with (
                pytest.raises(ConfigurationError, match=f"{SETTING}: {taken}"),
                metrics_server(SETTING, taken, metrics),
            ):
                pass
