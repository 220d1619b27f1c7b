"""The doctor tells a key that has ended from one that this pepper has not made."""

from __future__ import annotations

import pytest
import typer
from typer.main import get_command

from cli.app import make_app
from cli.commands.doctor.endpoint_checks import endpoint_checks
from cli.commands.doctor.refused_key import MADE_HERE, NOT_MADE_HERE, UNKNOWN, refused_key
from cli.invocation.context import Context, Output
from outbox.postgres.operators.api_key_tokens import ApiKeyTokens
from tests.fixtures_http_server import QuietHandler, http_server

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


class Guarded(QuietHandler):
    """An API that accepts no key."""

    def serve(self) -> None:
        self.answer_json({"title": "No valid API key", "code": "unauthenticated"}, 401)


def test_the_doctor_shows_it_beside_the_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTBOX_API_KEY", KEY)
    monkeypatch.setenv("OUTBOX_AUTH_PEPPER", "q" * 32)
    with http_server(Guarded) as url:
        context = typer.Context(get_command(make_app()))
        context.obj = Context(
            output=Output.JSON, url=url, timeout_seconds=5, quiet=True, color=False, yes=False
        )
        (found,) = endpoint_checks(context)
    assert found.detail.startswith("No valid API key: Set OUTBOX_API_KEY, or ")
    assert found.detail.endswith(f"makes one; {NOT_MADE_HERE}")
    assert KEY not in found.detail
