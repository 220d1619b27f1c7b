"""The SSRF guard of checks: judges a registered URL, and each address that a socket connects to.

An address that is not globally routable is refused, unless the operator allows it by network or
host name. Link-local and metadata addresses are always refused. ``ipaddress`` knows IANA's
special-purpose registries; of IPv6 only global unicast is public. An IPv4 address inside an IPv6
address is unwrapped first. Pure: no name is resolved here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from outbox.errors import CheckUrlForbidden, ConfigurationError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

LONGEST_URL: Final = 2048
LONGEST_HOST: Final = 253


class Rule(StrEnum):
    """The rule that refuses a check URL or an address; a metric label and a fact of an error."""

    URL_FORM = "url-form"
    SCHEME = "scheme"
    USER_INFO = "user-info"
    FRAGMENT = "fragment"
    HOST_FORM = "host-form"
    PORT = "port"
    METADATA = "metadata"
    LINK_LOCAL = "link-local"
    NOT_GLOBAL = "not-global"
    PLAIN_HTTP = "plain-http"


@dataclass(frozen=True, slots=True, kw_only=True)
class SsrfPolicy:
    """What the operator allows beyond public addresses over https."""

    networks: tuple[Network, ...]
    hosts: frozenset[str]
    ports: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckUrl:
    """The parts of a check URL; ``host`` is in lower case, without trailing dot and brackets."""

    scheme: str
    host: str
    port: int


def policy_of(
    cidrs: Iterable[str],
    hosts: Iterable[str],
    ports: Iterable[str],
) -> SsrfPolicy:
    """Read a policy from settings. Raises ConfigurationError that names the wrong value."""
    return SsrfPolicy(
        networks=tuple(_network(text) for text in cidrs),
        hosts=frozenset(_bare(host) for host in hosts),
        ports=tuple(_port_range(text) for text in ports),
    )


def read_check_url(text: str, policy: SsrfPolicy) -> CheckUrl:
    """Parse a check URL and judge all that needs no name resolution.

    Raises CheckUrlForbidden that names the rule. At registration this is only a first check: the
    address that the socket connects to is judged again.
    """
    url = _parse(text)
    rule = _judge_url(url, policy)
    if rule is not None:
        raise CheckUrlForbidden(rule)
    return url


def judge(url: CheckUrl, address: str, policy: SsrfPolicy) -> Rule | None:
    """Judge one address that a check to ``url`` would connect to; None allows it."""
    seen = _literal(address)
    if seen is None:
        return Rule.HOST_FORM
    reached = _unwrapped(seen)
    allowed = url.host in policy.hosts or _within(reached, policy.networks)
    for refused, rule in (
        (reached.is_link_local, Rule.LINK_LOCAL),
        (_within(reached, METADATA), Rule.METADATA),
        (reached.is_multicast or reached.is_unspecified, Rule.NOT_GLOBAL),
        (not _is_port_allowed(url, policy), Rule.PORT),
        (not (allowed or _is_public(reached)), Rule.NOT_GLOBAL),
        (not allowed and url.scheme == "http", Rule.PLAIN_HTTP),
    ):
        if refused:
            return rule
    return None


def _is_public(address: Address) -> bool:
    is_unicast = address.version == 4 or address in GLOBAL_UNICAST
    return address.is_global and is_unicast and not _within(address, SPECIAL)


def _unwrapped(address: Address) -> Address:
    """Return the IPv4 address that a mapped, 6to4 or NAT64 address stands for, or the address."""
    if isinstance(address, IPv4Address):
        return address
    if address in NAT64:
        return IPv4Address(address.packed[12:])
    return address.ipv4_mapped or address.sixtofour or address


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(map(ip_network, texts))


NAT64: Final = IPv6Network("64:ff9b::/96")
GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
SPECIAL: Final = _networks("192.0.0.0/24", "192.88.99.0/24", "3fff::/20")
"""Special-purpose addresses that ``ipaddress`` of some versions of Python calls public."""
METADATA: Final = _networks(
    "100.100.100.200/32",  # Alibaba Cloud
    "168.63.129.16/32",  # Azure
    "192.0.0.192/32",  # Oracle Cloud
    "fd00:ec2::/32",  # Amazon
    "fd20:ce::254/128",  # Google
)
METADATA_NAMES: Final = frozenset({"metadata", "metadata.google.internal", "instance-data"})

_PRINTABLE: Final = re.compile(rf"[!-\[\]-~]{{0,{LONGEST_URL}}}")
"""ASCII without spaces, control characters and backslashes."""
_SHAPE: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?]*)(/[^?]*)?(\?.+)?"
)
_AUTHORITY: Final = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(?P<port>[0-9]{1,5}))?"
)
_DEFAULT_PORT: Final = {"http": 80, "https": 443}


def _parse(text: str) -> CheckUrl:
    """Parse the strict subset of URLs that every parser reads alike; refuse the rest."""
    shape = _SHAPE.fullmatch(text) if _PRINTABLE.fullmatch(text) else None
    if shape is None:
        raise CheckUrlForbidden(Rule.URL_FORM)
    scheme = shape["scheme"].lower()
    for found, rule in (
        (scheme not in _DEFAULT_PORT, Rule.SCHEME),
        ("#" in text, Rule.FRAGMENT),
        ("@" in shape["authority"], Rule.USER_INFO),
    ):
        if found:
            raise CheckUrlForbidden(rule)
    authority = _AUTHORITY.fullmatch(shape["authority"])
    if authority is None:
        raise CheckUrlForbidden(Rule.HOST_FORM)
    port = int(authority["port"] or _DEFAULT_PORT[scheme])
    return CheckUrl(scheme=scheme, host=_host(authority["host"]), port=port)


def _host(text: str) -> str:
    """Return the normalized host; numbers that are no plain IPv4 address are refused."""
    host = _bare(text)
    labels = host.split(".")
    numeric = re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]) is not None
    if len(host) > LONGEST_HOST or (":" not in host and not all(labels)):
        raise CheckUrlForbidden(Rule.HOST_FORM)
    if (numeric or ":" in host) and _literal(host) is None:
        raise CheckUrlForbidden(Rule.HOST_FORM)
    return host


def _bare(host: str) -> str:
    return host.lower().strip("[]").removesuffix(".")


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _judge_url(url: CheckUrl, policy: SsrfPolicy) -> Rule | None:
    if _literal(url.host) is not None:
        return judge(url, url.host, policy)
    if url.host in METADATA_NAMES:
        return Rule.METADATA
    if url.host.split(".")[-1] == "localhost":
        return judge(url, "127.0.0.1", policy)
    if not _is_port_allowed(url, policy):
        return Rule.PORT
    inside = bool(policy.networks) or url.host in policy.hosts
    if url.scheme == "http" and not inside:
        return Rule.PLAIN_HTTP
    return None


def _is_port_allowed(url: CheckUrl, policy: SsrfPolicy) -> bool:
    return any(low <= url.port <= high for low, high in policy.ports)


def _within(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == each.version and address in each for each in networks)


def _network(text: str) -> Network:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        raise ConfigurationError(f"OUTBOX_CHECK_ALLOW_CIDRS: {text!r} is no network") from None


def _port_range(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    try:
        pair = int(low), int(high or low)
    except ValueError:
        pair = (0, -1)
    if not 1 <= pair[0] <= pair[1] <= 65_535:
        raise ConfigurationError(f"OUTBOX_CHECK_ALLOW_PORTS: {text!r} is no port or range")
    return pair
