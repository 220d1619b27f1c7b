"""The form of bearer tokens; stored keys are tested in tests/integration/api/http."""

from __future__ import annotations

import pytest

from outbox.postgres.operators.api_keys import read_token, token_of

KEY_ID, SECRET = "0123456789abcdef", "ab" * 32
TOKEN = token_of(KEY_ID, SECRET)


def test_a_token_is_read_back() -> None:
    assert read_token(TOKEN) == (KEY_ID, SECRET)


@pytest.mark.parametrize(
    "token",
    ["", TOKEN[:-1], TOKEN + "\n", TOKEN + "0", TOKEN.replace("ab", "ba", 1), TOKEN.upper()],
)
def test_a_token_with_a_wrong_form_or_checksum_is_refused(token: str) -> None:
    assert read_token(token) is None
