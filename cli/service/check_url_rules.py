"""What each rule about check URLs means, and what to do."""

from collections.abc import Mapping
from typing import Final

from outbox.checks.ssrf_guard import Rule

ALLOW: Final = "OUTBOX_CHECK_ALLOW_CIDRS or OUTBOX_CHECK_ALLOW_HOSTS"
MEANING: Final[Mapping[str, str]] = {
    Rule.URL_FORM: "It is no URL such as https://billing.example.com/outbox/check.",
    Rule.SCHEME: "It must begin with https:// or http://.",
    Rule.USER_INFO: "It must contain no user and no password.",
    Rule.FRAGMENT: "It must contain no #.",
    Rule.HOST_FORM: "Its host is neither a name nor an address.",
    Rule.PORT: "Its port is not one of OUTBOX_CHECK_ALLOW_PORTS.",
    Rule.METADATA: "The address of a cloud's metadata is never called.",
    Rule.LINK_LOCAL: "A link-local address is never called.",
    Rule.NOT_GLOBAL: f"It is a private address: the outbox's operator can allow it with {ALLOW}.",
    Rule.PLAIN_HTTP: f"Without TLS it must be allowed by the outbox's operator with {ALLOW}.",
}
