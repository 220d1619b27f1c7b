"""Where checks may go by the settings; our own API, database and brokers are never a target."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from outbox.checks.ssrf_guard import SsrfPolicy, policy_of
from outbox.settings.catalogue import Settings

POSTGRES_PORT: Final = 5432
KAFKA_PORT: Final = 9092
LOOPBACK: Final = ("127.0.0.0/8", "::1/128")


def ssrf_policy(settings: Settings) -> SsrfPolicy:
    """Return where checks and notices may go. Resolves the names of our own listeners.

    Raises ConfigurationError naming what cannot be read.
    """
    return policy_of(
        settings.check_allow_cidrs,
        settings.check_allow_hosts,
        settings.check_allow_ports,
        https_only=settings.check_https_only,
        own=own_listeners(settings),
    )


def own_listeners(settings: Settings) -> tuple[tuple[str, int], ...]:
    """Return (network, port) of each of our listeners in the settings.

    Names are resolved once, here. A name that does not resolve is left out, because nothing can
    connect to it.
    """
    found = {
        (network, port)
        for host, port in _addresses(settings)
        for network in _networks(host.strip("[]"))
    }
    return tuple(sorted(found))


def _addresses(settings: Settings) -> Iterator[tuple[str, int]]:
    for bind in (settings.http_bind, settings.checker_metrics_bind, settings.metrics_bind):
        yield from _split([bind or ""], 0)
    yield from _split(settings.kafka_bootstrap_servers, KAFKA_PORT)
    hosts = urlsplit(settings.required_database_url()).netloc.rpartition("@")[2]
    yield from _split(hosts.split(","), POSTGRES_PORT)


def _split(places: Iterable[str], default_port: int) -> Iterator[tuple[str, int]]:
    """Split ``host:port``; a host without a port number has the default port."""
    for place in places:
        host, _, port = place.rpartition(":")
        if port.isdigit() and int(port):
            yield host, int(port)
        elif place and default_port:
            yield place.rstrip(":"), default_port


def _networks(host: str) -> Iterator[str]:
    """Return the networks of a listener; a wildcard has all addresses of this machine."""
    if host in ("", "0.0.0.0", "::"):
        yield from LOOPBACK
        yield from _resolved(socket.gethostname())
        return
    for network in _resolved(host):
        if ip_address(network).is_loopback:
            yield from LOOPBACK
        else:
            yield network


def _resolved(host: str) -> Iterator[str]:
    try:
        infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return
    for *_, address in infos:
        yield str(address[0]).partition("%")[0]
