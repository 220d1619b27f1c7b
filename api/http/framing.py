"""Refuses a head that two readers could understand differently, or that promises an odd body.

The parser refuses most of it: two lengths, a length beside chunks, folded lines, bad characters.
"""

from __future__ import annotations

from typing import Final

from api.http.exchange import HeaderList
from api.http.problems import Problem

WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})
METHODS: Final = WITH_BODY | WITHOUT_BODY
SINGLE: Final = frozenset(
    {
        b"authorization",
        b"content-encoding",
        b"content-length",
        b"content-type",
        b"expect",
        b"host",
        b"idempotency-key",
        b"origin",
        b"sec-fetch-site",
        b"transfer-encoding",
    }
)
"""Headers that decide what a request means, and that a proxy may read from another place."""


def fields_of(headers: HeaderList) -> dict[bytes, bytes]:
    """Return header fields by name; several ``Prefer`` fields are one list (RFC 9110, 5.3)."""
    by_name = dict(headers)
    if len(by_name) != len(headers) and b"prefer" in by_name:
        by_name[b"prefer"] = b",".join(value for name, value in headers if name == b"prefer")
    return by_name


def validate_framing(
    method: str, http_version: str, headers: HeaderList, by_name: dict[bytes, bytes]
) -> None:
    """Raise Problem ``malformed-request``, or refuse a body that the method does not take."""
    if len(by_name) != len(headers):
        _refuse_repeated(headers)
    if http_version != "1.1":
        _refuse_other_version(http_version)
    elif b"host" not in by_name:
        raise _malformed("Host is missing")
    coding = by_name.get(b"transfer-encoding")
    if coding is not None and (coding.lower() != b"chunked" or http_version != "1.1"):
        raise _malformed("the only transfer coding is chunked, in HTTP/1.1")
    if b"upgrade" in by_name and declares_body(by_name):
        raise _malformed(
            "a body and Upgrade do not go together: use HTTP/1.1 without Upgrade"
            " (Java's HttpClient: `.version(HttpClient.Version.HTTP_1_1)`)"
        )
    if method not in METHODS and declares_body(by_name):
        allowed = ", ".join(sorted(METHODS))
        raise Problem(slug="method-not-allowed", headers={"allow": allowed, "connection": "close"})
    if method not in WITH_BODY and declares_body(by_name):
        raise Problem(
            slug="payload-too-large",
            detail="this method takes no body",
            headers={"connection": "close"},
        )


def _refuse_other_version(http_version: str) -> None:
    """Raise Problem for a version that we do not speak; the parser takes 0.9 and 2.0 as well."""
    if http_version != "1.0":
        raise _malformed("the only versions are HTTP/1.1 and HTTP/1.0")


def declares_body(headers: dict[bytes, bytes]) -> bool:
    """Return True if a body follows the head."""
    return (
        b"transfer-encoding" in headers or headers.get(b"content-length", b"0").strip(b"0") != b""
    )


def _refuse_repeated(headers: HeaderList) -> None:
    seen: set[bytes] = set()
    for name, _ in headers:
        if name in seen and name in SINGLE:
            raise _malformed(f"{name.decode()} is present twice")
        seen.add(name)


def _malformed(detail: str) -> Problem:
    return Problem(slug="malformed-request", detail=detail, headers={"connection": "close"})
