"""The doctor tells a key that has ended from one that this pepper has not made."""

from __future__ import annotations

import pytest

from cli.commands.doctor.refused_key import MADE_HERE, NOT_MADE_HERE, UNKNOWN, refused_key
from outbox.postgres.operators.api_key_tokens import ApiKeyTokens

PEPPER = "p" * 32
KEY_ID, SECRET = "0" * 16, "1" * 64
KEY = ApiKeyTokens(PEPPER.encode()).issue(KEY_ID, SECRET)
MISTYPED = KEY[:-1] + ("a" if KEY[-1] != "a" else "b")


@pytest.mark.parametrize(
    ("key", "pepper", "said"),
    [
        (KEY, PEPPER, MADE_HERE),
        (KEY, "q" * 32, NOT_MADE_HERE),
        (MISTYPED, PEPPER, NOT_MADE_HERE),
        (KEY, None, UNKNOWN),
    ],
)
def test_a_refused_key_names_what_may_be_wrong(key: str, pepper: str | None, said: str) -> None:
    assert refused_key(key, pepper) == said
