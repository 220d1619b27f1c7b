"""Where checks may go by the settings; our own API, database and brokers are never a target.

Names of our listeners are resolved whenever a check goes to the port of one of them, because a
name has another address after a failover. An address that a name has had stays forbidden.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from ipaddress import ip_address, ip_network
from itertools import zip_longest
from typing import Final
from urllib.parse import urlsplit

from outbox.checks.embedded_addresses import unwrap
from outbox.checks.ssrf_guard import Network, SsrfPolicy, policy_of
from outbox.settings.catalogue import Settings
from outbox.settings.libpq import libpq_parts

POSTGRES_PORT: Final = 5432
KAFKA_PORT: Final = 9092
HTTP_PORTS: Final = {"http": 80, "https": 443}
LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1/128"))

Place = tuple[str, int]
"""Host and port of a listener; the host is a name, an address, or a local socket."""


class OwnListeners:
    """The listeners of one installation, by port."""

    def __init__(self, places: Iterable[Place]) -> None:
        self._names: dict[int, set[str]] = {}
        self._seen: dict[int, set[Network]] = {}
        self._here: set[int] = set()
        for host, port in places:
            networks = _literal(host)
            self._seen.setdefault(port, set()).update(networks)
            if not networks:
                self._names.setdefault(port, set()).add(host)
            elif _is_every_address(host):
                self._here.add(port)

    def known(self) -> tuple[tuple[Network, int], ...]:
        """Return (network, port) of each address that is known without a look-up."""
        return tuple((each, port) for port, found in self._seen.items() for each in found)

    def has_names(self, port: int) -> bool:
        """Return whether a look-up can find more addresses of the listeners on a port."""
        return port in self._names

    def find(self, port: int) -> None:
        """Look up the names of the listeners on a port; a name without an address is left out."""
        for name in self._names.get(port, ()):
            self._seen[port].update(_resolved(name))

    def at(self, port: int) -> tuple[tuple[Network, int], ...]:
        """Return (network, port) of every address that listeners on a port are known to have."""
        return tuple((each, port) for each in self._seen.get(port, ()))

    def is_here(self, port: int) -> bool:
        """Return whether one of our listeners has a port on every address of this machine."""
        return port in self._here


def ssrf_policy(settings: Settings) -> SsrfPolicy:
    """Return where checks and notices may go, without any look-up.

    Raises ConfigurationError naming what cannot be read.
    """
    return policy_of(
        settings.check_allow_cidrs,
        settings.check_allow_hosts,
        settings.check_allow_ports,
        https_only=settings.check_https_only,
        own=own_listeners(settings).known(),
        nat64=settings.check_nat64_prefixes,
    )


def own_listeners(settings: Settings) -> OwnListeners:
    """Return our listeners: API, metrics, brokers, database and replica.

    Raises ConfigurationError for a database address that cannot be read.
    """
    return OwnListeners(_places(settings))


def is_this_machine(address: str) -> bool:
    """Return whether an address belongs to this machine: only then a socket can have it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def database_places(url: str, setting: str) -> Iterator[Place]:
    """Return the servers of an address in any form that libpq takes, the environment included.

    Raises ConfigurationError that names the setting.
    """
    parts = libpq_parts(url, setting)
    hosts, addresses, ports = (parts.get(name, "").split(",") for name in _LISTS)
    for host, address, port in zip_longest(hosts, addresses, ports):
        number = port if port is not None else ports[0]
        for place in {host, address} - {None, ""} or {""}:
            yield place, int(number or POSTGRES_PORT)


_LISTS: Final = ("host", "hostaddr", "port")


def _places(settings: Settings) -> Iterator[Place]:
    for bind in (settings.http_bind, settings.checker_metrics_bind, settings.metrics_bind):
        yield from _split([bind or ""], 0)
    yield from _split(settings.kafka_bootstrap_servers, KAFKA_PORT)
    yield from database_places(settings.required_database_url(), "OUTBOX_DATABASE_URL")
    replica = settings.reconcile_replica_url
    if replica is not None:
        yield from database_places(replica.get_secret_value(), "OUTBOX_RECONCILE_REPLICA_URL")
    if settings.api_url:
        api = urlsplit(settings.api_url)
        with suppress(ValueError):
            yield api.hostname or "", api.port or HTTP_PORTS.get(api.scheme, 0)


def _split(places: Iterable[str], default_port: int) -> Iterator[Place]:
    """Split ``host:port``; a host without a port number has the default port."""
    for place in places:
        host, _, port = place.rpartition(":")
        if port.isdigit() and int(port):
            yield host, int(port)
        elif place and default_port:
            yield place.rstrip(":"), default_port


def _literal(host: str) -> tuple[Network, ...]:
    """Return the networks of a host that is no name: this machine, or an address."""
    if _is_every_address(host) or host.lower() == "localhost":
        return LOOPBACK
    with suppress(ValueError):
        return _network(host.strip("[]"))
    return ()


def _is_every_address(host: str) -> bool:
    """Return True for a wildcard, and for a local socket: its server may listen anywhere here."""
    return host.strip("[]") in ("", "*", "0.0.0.0", "::") or host.startswith(("/", "@"))


def _network(address: str) -> tuple[Network, ...]:
    """Return the networks of an address, also of an IPv4 address that is written as IPv6."""
    reached = unwrap(ip_address(address.partition("%")[0]))
    if any(each.is_loopback or each.is_unspecified for each in reached):
        return LOOPBACK
    return tuple(ip_network(each) for each in reached)


def _resolved(name: str) -> Iterator[Network]:
    try:
        infos = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return
    for *_, address in infos:
        yield from _network(str(address[0]))
