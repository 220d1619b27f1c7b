"""The form of bearer tokens; stored keys are tested in tests/integration/api/http."""

from __future__ import annotations

from outbox.postgres.operators.api_key_tokens import ApiKeyTokens

KEY_ID, SECRET = "0123456789abcdef", "ab" * 32
TOKENS = ApiKeyTokens(b"pepper")
TOKEN = TOKENS.issue(KEY_ID, SECRET)


def test_a_token_is_read_back() -> None:
    assert TOKENS.read(TOKEN) == (KEY_ID, SECRET)


def test_a_token_with_a_wrong_form_or_checksum_is_refused() -> None:
    changed = (TOKEN[:-1], f"{TOKEN}\n", f"{TOKEN}0", TOKEN.replace("ab", "ba", 1), TOKEN.upper())
    for wrong in ("", *changed):
        assert TOKENS.read(wrong) is None


def test_a_token_of_another_pepper_is_refused() -> None:
    assert TOKENS.read(ApiKeyTokens(b"other").issue(KEY_ID, SECRET)) is None
