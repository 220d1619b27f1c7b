from __future__ import annotations

import pytest

from outbox.messages.content_digest import content_digest

MESSAGE_ID = b"0f6c1c0e-8d0b-8c55-9a54-6f2b7c1d9e10"
GROUP = ("outbox_producer_group", b"billing")
ALL_HEADERS = (
    GROUP,
    ("outbox_transaction_id", b"invoice-7731"),
    ("content-type", b"application/json"),
    ("tenant", b"north"),
)


@pytest.mark.parametrize(
    ("key", "value", "headers", "expected"),
    [
        (None, b"", (GROUP,), 81256748954380533),
        (b"a", None, (GROUP,), 1751512671071624028),
        (None, b"a", (GROUP,), 7887895395721333892),
        (b"cust-58", b'{"invoice":7731}', ALL_HEADERS, -8714026858146044346),
    ],
)
def test_the_digest_equals_the_published_vectors(
    key: bytes | None, value: bytes | None, headers: tuple[tuple[str, bytes], ...], expected: int
) -> None:
    assert content_digest(MESSAGE_ID, "invoices.issued", key, value, headers) == expected
