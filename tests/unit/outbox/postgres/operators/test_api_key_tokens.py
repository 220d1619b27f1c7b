"""The form of bearer tokens; stored keys are tested in tests/integration/api/http."""

from __future__ import annotations

import pytest

from outbox.access import TokenOrigin
from outbox.postgres.operators.api_key_tokens import ApiKeyTokens, old_checksum

KEY_ID, SECRET = "0123456789abcdef", "ab" * 32
TOKENS = ApiKeyTokens(b"pepper")
TOKEN = TOKENS.issue(KEY_ID, SECRET)
OLD = f"obx_{KEY_ID}_{SECRET}_{old_checksum(KEY_ID, SECRET)}"


@pytest.mark.parametrize(
    ("token", "origin"), [(TOKEN, TokenOrigin.ISSUED), (OLD, TokenOrigin.UNPROVEN)]
)
def test_a_token_of_either_form_is_read_back(token: str, origin: TokenOrigin) -> None:
    assert TOKENS.read(token) == (KEY_ID, SECRET)
    assert TOKENS.origin(token) is origin


@pytest.mark.parametrize("token", [TOKEN, OLD])
def test_a_token_with_a_wrong_form_or_checksum_is_refused(token: str) -> None:
    other_form = token.replace("obx2_", "obx_") if token is TOKEN else f"obx2{OLD[3:]}"
    changed = (token[:-1], f"{token}\n", f"{token}0", token.replace("ab", "ba", 1), token.upper())
    for wrong in ("", other_form, *changed):
        assert TOKENS.read(wrong) is None
        assert TOKENS.origin(wrong) is TokenOrigin.FOREIGN


def test_a_token_of_another_pepper_is_foreign() -> None:
    assert TOKENS.origin(ApiKeyTokens(b"other").issue(KEY_ID, SECRET)) is TokenOrigin.FOREIGN
