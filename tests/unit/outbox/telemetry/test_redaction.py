from __future__ import annotations

import pytest

from outbox.telemetry.redaction import redaction

KEY = f"obx_{'0' * 16}_{'a' * 64}_{'1' * 8}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"key {KEY}.", "key (secret)."),
        (f"secret whsec_{'k' * 43}=", "secret (secret)"),
        ("postgresql://user:pa@ss/word@db:1/x?a=b", "postgresql://(secret)@db:1/x?a=b"),
        ("Authorization: Bearer abc.def-1, then", "Authorization: Bearer (secret), then"),
        ("authorization: basic dXNlcg==", "authorization: basic (secret)"),
        ("sc://spark:15002/;token=abc;user_id=x", "sc://spark:15002/;token=(secret);user_id=x"),
        ("host=db password=abc user=x", "host=db password=(secret) user=x"),
        ('{"url": "http://host:1/check", "mail": "a@b"}',) * 2,
        ("at https://example.com/check of message 0f6c1c0e-8d0b",) * 2,
    ],
)
def test_a_secret_is_known_by_its_form(text: str, shown: str) -> None:
    assert redaction()(text) == shown


@pytest.mark.parametrize("text", ["a.b*c(", 'quote"d', "wörter", "back\\slash"])
def test_a_secret_is_known_by_its_value_in_plain_text_and_in_json(text: str) -> None:
    redact = redaction([text, ""])
    assert redact(f"<{text}>") == "<(secret)>"
    escaped = text.encode("unicode_escape").decode().replace('"', '\\"').replace("\\xf6", "\\u00f6")
    assert redact(f'{{"x": "{escaped}"}}') == '{"x": "(secret)"}'


def test_the_longest_secret_is_replaced_first() -> None:
    assert redaction(["secret-part", "secret-part-two"])("secret-part-two") == "(secret)"
