from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.checks.embedded_addresses import unwrap
from outbox.checks.ssrf_guard import (
    CheckUrl,
    Rule,
    SsrfPolicy,
    judge,
    policy_of,
    read_check_url,
)
from outbox.errors import CheckUrlForbidden, ConfigurationError

CLOSED = SsrfPolicy()
INSIDE = policy_of(["0.0.0.0/0", "::/0"], [], ["1-65535"])
"""As open as an operator can be."""


def refused(url: str, policy: SsrfPolicy = CLOSED) -> str | None:
    try:
        read_check_url(url, policy)
    except CheckUrlForbidden as error:
        return error.rule
    return None


SPELLINGS = {
    # loopback in all its forms
    "127.0.0.1": "not-global",
    "127.1": "host-form",
    "2130706433": "host-form",
    "0x7f.1": "host-form",
    "0x7f000001": "host-form",
    "0177.0.0.1": "host-form",
    "017700000001": "host-form",
    "127.0.0.01": "host-form",
    "127.0.0.1.": "not-global",
    "0": "host-form",
    "0.0.0.0": "not-global",
    "127.255.255.254": "not-global",
    "[::]": "not-global",
    "[::1]": "not-global",
    "[0:0:0:0:0:0:0:1]": "not-global",
    "[::127.0.0.1]": "not-global",
    "[::ffff:127.0.0.1]": "not-global",
    "[::ffff:7f00:1]": "not-global",
    "[64:ff9b::7f00:1]": "not-global",
    "[64:ff9b:1::1]": "not-global",
    "[2002:7f00:1::]": "not-global",
    "[2001:0:5ef5:79fd:0:59d:80ff:fffe]": "not-global",
    "[2001:0:7f00:1::8.8.8.8]": "not-global",
    "[2001:0:7f00:1::f7f7:f7f7]": "not-global",
    "[2001:0:a9fe:a9fe::f7f7:f7f7]": "link-local",
    "localhost": "not-global",
    "LOCALHOST": "not-global",
    "localhost.": "not-global",
    "api.localhost": "not-global",
    "localhost.localdomain": "not-global",
    "ip6-localhost": "not-global",
    # private, shared, special
    "10.0.0.1": "not-global",
    "172.16.0.1": "not-global",
    "172.31.255.255": "not-global",
    "192.168.1.1": "not-global",
    "100.64.0.1": "not-global",
    "192.0.0.1": "not-global",
    "192.0.2.1": "not-global",
    "192.88.99.1": "not-global",
    "198.18.0.1": "not-global",
    "198.51.100.1": "not-global",
    "203.0.113.1": "not-global",
    "224.0.0.1": "not-global",
    "240.0.0.1": "not-global",
    "255.255.255.255": "not-global",
    "[fc00::1]": "not-global",
    "[fd12:3456::1]": "not-global",
    "[fec0::1]": "not-global",
    "[5f00::1]": "not-global",
    "[3fff::1]": "not-global",
    "[2001:db8::1]": "not-global",
    "[2001:2::1]": "not-global",
    "[2001:20::1]": "not-global",
    "[100::1]": "not-global",
    "[ff02::1]": "not-global",
    "[2002:a00:1::]": "not-global",
    "[64:ff9b::a00:1]": "not-global",
    "[::ffff:10.0.0.1]": "not-global",
    # IPv4 inside IPv6
    "[64:ff9b:1:7f00:0:100::]": "not-global",
    "[::ffff:0:127.0.0.1]": "not-global",
    "[::10.0.0.1]": "not-global",
    "[::169.254.169.254]": "link-local",
    "[::ffff:0:169.254.169.254]": "link-local",
    "[64:ff9b:1:a9fe:a9:fe00::]": "link-local",
    "[2a00:1450:4001::5efe:127.0.0.1]": "not-global",
    "[2a00:1450:4001::200:5efe:10.0.0.1]": "not-global",
    "[2a00:1450:4001::5efe:169.254.169.254]": "link-local",
    "[2002:808:808::5efe:169.254.169.254]": "link-local",
    "[2002:808:808::5efe:10.0.0.1]": "not-global",
    # link-local and metadata
    "169.254.169.254": "link-local",
    "2852039166": "host-form",
    "0xa9fea9fe": "host-form",
    "[::ffff:169.254.169.254]": "link-local",
    "[::ffff:a9fe:a9fe]": "link-local",
    "[64:ff9b::a9fe:a9fe]": "link-local",
    "[2002:a9fe:a9fe::]": "link-local",
    "[fe80::1]": "link-local",
    "[fe80::1%lo]": "host-form",
    "[fe80::1%25lo]": "host-form",
    "100.100.100.200": "metadata",
    "168.63.129.16": "metadata",
    "[fd00:ec2::254]": "metadata",
    "metadata.google.internal": "metadata",
    "METADATA.google.internal.": "metadata",
    # no host at all
    "": "host-form",
    ".": "host-form",
    "..": "host-form",
    "a..b": "host-form",
    "exa mple.com": "url-form",
    "exa%6Dple.com": "host-form",
    "１２７.０.０.１": "url-form",
    "①②⑦.⓪.⓪.①": "url-form",
    "a" * 254: "host-form",
    "a" * 10_000: "url-form",
    "[::1": "host-form",
    "::1": "host-form",
    "1.2.3.4.5": "host-form",
    "256.1.1.1": "host-form",
}


@pytest.mark.parametrize("host", SPELLINGS, ids=lambda host: f"{host[:50]!r} of {len(host)}")
def test_a_spelling_of_an_inner_address_is_refused(host: str) -> None:
    assert refused(f"https://{host}/check") == SPELLINGS[host]


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("ftp://example.com/", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("gopher://example.com/", "scheme"),
        ("unix:///run/x.sock", "scheme"),
        ("javascript:alert(1)", "url-form"),
        ("example.com/check", "url-form"),
        ("//example.com/", "url-form"),
        ("", "url-form"),
        ("https://ok@127.0.0.1/", "user-info"),
        ("https://user:password@example.com/", "user-info"),
        ("https://127.0.0.1#@example.com/", "fragment"),
        ("https://example.com/#part", "fragment"),
        ("https://example.com\\@127.0.0.1/", "url-form"),
        ("https:\\\\example.com/", "url-form"),
        ("https://example.com/\r\nHost: x", "url-form"),
        ("https://example.com/\t", "url-form"),
        ("https://example.com:22/", "port"),
        ("https://example.com:0/", "port"),
        ("https://example.com:99999/", "port"),
        ("https://example.com:443443/", "host-form"),
        ("https://example.com:/", "host-form"),
        ("http://example.com/", "plain-http"),
        ("https://example.com/" + "a" * 2048, "url-form"),
    ],
)
def test_a_url_of_another_shape_is_refused(url: str, rule: str) -> None:
    assert refused(url) == rule


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/check",
        "HTTPS://Example.com",
        "https://example.com:8443/check?x=1",
        "https://8.8.8.8/check",
        "https://[2a00:1450:4001::1]/check",
        "https://[::ffff:8.8.8.8]/check",
        "https://[64:ff9b::8.8.8.8]/check",
        "https://[2a00:1450:4001::5efe:8.8.8.8]/check",
        "https://xn--bcher-kva.example/",
    ],
)
def test_a_public_https_url_is_allowed(url: str) -> None:
    assert refused(url) is None


def test_what_the_operator_allows_is_allowed_also_over_plain_http() -> None:
    policy = policy_of(["127.0.0.0/8"], ["Account.internal"], ["80", "8000-9000"])
    assert refused("http://127.0.0.1:8080/check", policy) is None
    assert refused("http://localhost:8080/check", policy) is None
    assert refused("http://account.internal/check", policy) is None
    assert refused("http://127.0.0.1:9001/check", policy) == "port"
    assert refused("http://10.0.0.1:8080/check", policy) == "not-global"
    assert refused("http://[::1]:8080/check", policy) == "not-global"


def test_an_allowed_host_may_be_any_address_that_is_not_forbidden_always() -> None:
    url = CheckUrl(scheme="http", host="account.internal", port=80)
    policy = policy_of([], ["account.internal"], ["80"])
    assert judge(url, "10.1.2.3", policy) is None
    assert judge(url, "169.254.169.254", policy) is Rule.LINK_LOCAL


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("169.254.169.254", Rule.LINK_LOCAL),
        ("fe80::1", Rule.LINK_LOCAL),
        ("fe80::1%2", Rule.LINK_LOCAL),
        ("::ffff:169.254.1.1", Rule.LINK_LOCAL),
        ("64:ff9b::a9fe:a9fe", Rule.LINK_LOCAL),
        ("2002:a9fe:a9fe::1", Rule.LINK_LOCAL),
        ("2001:0:808:808::5601:5601", Rule.LINK_LOCAL),
        ("64:ff9b::6464:64c8", Rule.METADATA),
        ("100.100.100.200", Rule.METADATA),
        ("fd00:ec2::254", Rule.METADATA),
        ("0.0.0.0", Rule.NOT_GLOBAL),
        ("::", Rule.NOT_GLOBAL),
        ("224.0.0.1", Rule.NOT_GLOBAL),
        ("not an address", Rule.HOST_FORM),
    ],
)
def test_no_setting_opens_link_local_and_metadata(address: str, rule: Rule) -> None:
    url = CheckUrl(scheme="http", host="example.com", port=80)
    assert judge(url, address, INSIDE) is rule


def embedded(prefix: IPv6Network, inner: str) -> str:
    """Return an address of RFC 6052: the eighth byte, counted from zero, stays empty."""
    packed = bytearray(prefix.network_address.packed)
    places = [place for place in range(prefix.prefixlen // 8, 16) if place != 8]
    for place, byte in zip(places, IPv4Address(inner).packed, strict=False):
        packed[place] = byte
    return str(IPv6Address(bytes(packed)))


@pytest.mark.parametrize("length", [48, 56, 64, 96])
@pytest.mark.parametrize(
    ("inner", "rule"),
    [
        ("169.254.169.254", Rule.LINK_LOCAL),
        ("100.100.100.200", Rule.METADATA),
        ("127.0.0.1", Rule.OWN_LISTENER),
    ],
)
def test_the_local_nat64_prefix_hides_nothing_at_any_length(
    length: int, inner: str, rule: Rule
) -> None:
    """Not even from an operator who has opened every network."""
    policy = policy_of(["0.0.0.0/0", "::/0"], [], ["1-65535"], own=[("127.0.0.0/8", 80)])
    address = embedded(IPv6Network(f"64:ff9b:1::/{length}"), inner)
    found = judge(CheckUrl(scheme="http", host="example.com", port=80), address, policy)
    assert found in (rule, Rule.NOT_GLOBAL)
    assert IPv4Address(inner) in unwrap(IPv6Address(address))


@pytest.mark.parametrize("length", [32, 40, 48, 56, 64, 96])
def test_an_address_behind_the_operators_own_nat64_prefix_is_judged_as_ipv4(length: int) -> None:
    prefix = IPv6Network(f"2001:4860::/{length}")
    policy = policy_of(["10.1.0.0/16"], [], ["443"], nat64=[str(prefix)])
    rules = {
        "8.8.8.8": None,
        "10.1.2.3": None,
        "10.2.2.3": "not-global",
        "127.0.0.1": "not-global",
        "169.254.169.254": "link-local",
        "100.100.100.200": "metadata",
    }
    for inner, rule in rules.items():
        url = f"https://[{embedded(prefix, inner)}]/check"
        assert refused(url, policy) == rule
        assert refused(url) is None, "without the setting it is an address like any other"


@given(st.integers(0, 2**32 - 1), st.sampled_from([32, 40, 48, 56, 64, 96]))
def test_every_ipv4_address_comes_out_of_a_prefix_as_it_went_in(number: int, length: int) -> None:
    prefix, inner = IPv6Network(f"2001:4860::/{length}"), str(IPv4Address(number))
    found = unwrap(IPv6Address(embedded(prefix, inner)), [prefix])
    assert found[0] == IPv4Address(inner)


@pytest.mark.parametrize("text", ["x", "10.0.0.0/8", "2001:db8::/95", "2001:db8::1/96"])
def test_a_nat64_prefix_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(ConfigurationError, match="OUTBOX_CHECK_NAT64_PREFIXES"):
        policy_of([], [], [], nat64=[text])


def test_loopback_itself_is_no_wrapped_address() -> None:
    policy = policy_of(["::1/128"], [], ["1-65535"])
    assert refused("http://[::1]:8080/check", policy) is None


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::ffff:127.0.0.1", "::1"])
def test_our_own_listeners_are_refused_inside_allowed_networks(address: str) -> None:
    policy = policy_of(
        ["127.0.0.0/8", "::/0"], [], ["1-65535"], own=[("127.0.0.0/8", 5432), ("::1/128", 5432)]
    )
    own = CheckUrl(scheme="http", host="localhost", port=5432)
    beside = CheckUrl(scheme="http", host="localhost", port=5433)
    assert judge(own, address, policy) is Rule.OWN_LISTENER
    assert judge(beside, address, policy) is None


def test_https_only_refuses_plain_http_everywhere() -> None:
    policy = policy_of(["127.0.0.0/8"], ["account"], ["80"], https_only=True)
    assert refused("http://127.0.0.1/", policy) == "plain-http"
    assert refused("http://account/", policy) == "plain-http"


@pytest.mark.parametrize(
    ("cidrs", "ports"), [(["300.0.0.0/8"], []), ([], ["x"]), ([], ["0"]), ([], ["9-8"])]
)
def test_a_setting_that_cannot_be_read_is_named(cidrs: list[str], ports: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="OUTBOX_CHECK_ALLOW_"):
        policy_of(cidrs, [], ports)
