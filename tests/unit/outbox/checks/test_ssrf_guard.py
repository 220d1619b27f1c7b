from __future__ import annotations

import pytest

from outbox.checks.ssrf_guard import CheckUrl, Rule, SsrfPolicy, judge, policy_of, read_check_url
from outbox.errors import CheckUrlForbidden, ConfigurationError
from outbox.settings.environment import load_settings

CLOSED = policy_of((), (), load_settings({}).check_allow_ports)
INSIDE = policy_of(["0.0.0.0/0", "::/0"], [], ["1-65535"])
"""As open as an operator can be."""


def refused(url: str, policy: SsrfPolicy = CLOSED) -> str | None:
    try:
        read_check_url(url, policy)
    except CheckUrlForbidden as error:
        return error.rule
    return None


SPELLINGS = {
    "not-global": (
        *("127.0.0.1", "127.0.0.1.", "0.0.0.0", "127.255.255.254", "[::]", "[::1]"),
        *("[0:0:0:0:0:0:0:1]", "[::127.0.0.1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
        *("[64:ff9b::7f00:1]", "[64:ff9b:1::1]", "[2002:7f00:1::]", "[2001:0:7f00:1::8.8.8.8]"),
        *("localhost", "LOCALHOST.", "api.localhost"),
        *("10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "192.0.0.1", "192.0.2.1"),
        *("198.18.0.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *("[fc00::1]", "[fd12:3456::1]", "[fec0::1]", "[5f00::1]", "[3fff::1]", "[2001:db8::1]"),
        *("[100::1]", "[ff02::1]", "[2002:a00:1::]", "[64:ff9b::a00:1]", "[::ffff:10.0.0.1]"),
    ),
    "link-local": (
        *("169.254.169.254", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]"),
        *("[2002:a9fe:a9fe::]", "[fe80::1]"),
    ),
    "metadata": (
        *("100.100.100.200", "168.63.129.16", "[fd00:ec2::254]", "METADATA.google.internal."),
    ),
    "host-form": (
        *("127.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.01", "0", "0xa9fea9fe"),
        *("[fe80::1%lo]", "", ".", "a..b", "exa%6Dple.com", "a" * 254, "[::1", "::1"),
        *("1.2.3.4.5", "256.1.1.1"),
    ),
    "url-form": ("exa mple.com", "①②⑦.⓪.⓪.①", "a" * 10_000),
}


@pytest.mark.parametrize("rule", SPELLINGS)
def test_a_spelling_of_an_inner_address_is_refused(rule: str) -> None:
    found = {host: refused(f"https://{host}/check") for host in SPELLINGS[rule]}
    assert found == dict.fromkeys(SPELLINGS[rule], rule)


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("ftp://example.com/", "scheme"),
        ("javascript:alert(1)", "url-form"),
        ("//example.com/", "url-form"),
        ("https://user:password@example.com/", "user-info"),
        ("https://127.0.0.1#@example.com/", "fragment"),
        ("https://example.com\\@127.0.0.1/", "url-form"),
        ("https://example.com/\r\nHost: x", "url-form"),
        ("https://example.com:22/", "port"),
        ("https://example.com:443443/", "host-form"),
        ("http://example.com/", "plain-http"),
        ("https://example.com/" + "a" * 2048, "url-form"),
        ("https://example.com/a?", "url-form"),
        ("https://example.com?", "url-form"),
    ],
)
def test_a_url_of_another_shape_is_refused(url: str, rule: str) -> None:
    assert refused(url) == rule


def test_a_public_https_url_is_allowed() -> None:
    for place in ("Example.com:8443", "8.8.8.8", "[2a00:1450:4001::1]", "[64:ff9b::8.8.8.8]"):
        assert refused(f"HTTPS://{place}/check?x=1") is None


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
        ("fe80::1%2", Rule.LINK_LOCAL),
        ("::ffff:169.254.1.1", Rule.LINK_LOCAL),
        ("64:ff9b::6464:64c8", Rule.METADATA),
        ("2002:a9fe:a9fe::1", Rule.LINK_LOCAL),
        ("::", Rule.NOT_GLOBAL),
        ("224.0.0.1", Rule.NOT_GLOBAL),
        ("not an address", Rule.HOST_FORM),
    ],
)
def test_no_setting_opens_link_local_and_metadata(address: str, rule: Rule) -> None:
    url = CheckUrl(scheme="http", host="example.com", port=80)
    assert judge(url, address, INSIDE) is rule


@pytest.mark.parametrize(
    ("cidrs", "ports"), [(["300.0.0.0/8"], []), ([], ["x"]), ([], ["0"]), ([], ["9-8"])]
)
def test_a_setting_that_cannot_be_read_is_named(cidrs: list[str], ports: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="OUTBOX_CHECK_ALLOW_"):
        policy_of(cidrs, [], ports)
