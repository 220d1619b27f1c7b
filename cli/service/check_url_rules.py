"""What each rule about check URLs means, and what to do."""

from collections.abc import Mapping
from typing import Final

from outbox.checks.ssrf_guard import Rule

ALLOW: Final = (
    "OUTBOX_CHECK_ALLOW_CIDRS or OUTBOX_CHECK_ALLOW_HOSTS, in compose with CHECK_ALLOW_HOSTS in"
    " .env; an endpoint on the machine of compose is http://host.docker.internal:PORT"
)
MEANING: Final[Mapping[str, str]] = {
    Rule.URL_FORM: (
        "It is no URL such as https://billing.example.com/outbox/check, is longer than 2048"
        " characters, or ends with a ? without a query."
    ),
    Rule.SCHEME: "It must begin with https:// or http://.",
    Rule.USER_INFO: "Remove the user and the password: checks are signed instead.",
    Rule.FRAGMENT: "Remove the # and what follows it.",
    Rule.HOST_FORM: "Its host is neither a name nor an address: write 127.0.0.1 or a full name.",
    Rule.PORT: "Its port is not one of OUTBOX_CHECK_ALLOW_PORTS: use another one, or extend it.",
    Rule.METADATA: "The address of a cloud's metadata is never called: give the endpoint another.",
    Rule.LINK_LOCAL: "A link-local address is never called: give the endpoint another.",
    Rule.NOT_GLOBAL: f"It is a private address: the outbox's operator can allow it with {ALLOW}.",
    Rule.PLAIN_HTTP: f"Use https, or let the outbox's operator allow the host with {ALLOW}.",
}
