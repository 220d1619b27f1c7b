"""The conformance kit distinguishes a correct check endpoint from each incorrect one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from outbox_client import Check, CheckEndpoint, LocalTransactionState
from tests.e2e.fixtures_command_here import Command
from tests.integration.client.checks.fixtures_check_servers import asgi_server
from tests.unit.outbox_client.fixtures_checks import GROUP, SECRET


class Listener:
    """Knows one transaction."""

    def check_local_transaction(self, check: Check, /) -> LocalTransactionState:
        known = check.transaction_id == "known"
        return LocalTransactionState.COMMIT if known else LocalTransactionState.UNKNOWN


Answer = Callable[[Any, Any], tuple[int, Any]]
"""Returns a status and a body for the correct endpoint's reply and the request's JSON."""


@contextmanager
def bent(answer: Answer) -> Iterator[str]:
    """Serve the correct endpoint with changed answers."""
    with CheckEndpoint(GROUP, SECRET, Listener()) as endpoint:

        async def handle(request: Request) -> Response:
            body = await request.body()
            reply = endpoint.handle(request.headers, body)
            status, document = answer(reply, json.loads(body))
            text = document if isinstance(document, bytes) else json.dumps(document).encode()
            return Response(text, status, media_type="application/json")

        with asgi_server(Starlette(routes=[Route("/{_:path}", handle, methods=["POST"])])) as url:
            yield url


Simulate = Callable[..., tuple[int, list[str], str]]
"""Runs the kit; returns its exit code, the cases that failed, and stderr."""


@pytest.fixture
def simulate(capsys: pytest.CaptureFixture[str]) -> Simulate:
    """Run it in this process."""

    def run(url: str, *more: str, secret: str = SECRET) -> tuple[int, list[str], str]:
        done = Command(capsys)(
            *("-o", "json", "--quiet", "check", "simulate", url),
            *("--producer-group", GROUP, "--transaction-id", "known", *more),
            OUTBOX_CHECK_SECRET=secret,
        )
        rows = json.loads(done.out or "[]")
        return done.code, [row["case"] for row in rows if not row["passed"]], done.err

    return run


def commits_all(reply: Any, asked: Any) -> tuple[int, Any]:
    return reply.status, {"message_id": asked["data"].get("message_id"), "decision": "COMMIT"}


def answers_all(_: Any, asked: Any) -> tuple[int, Any]:
    message_id = asked["data"].get("message_id")
    known = asked["data"].get("transaction_id") == "known"
    return 200, {"message_id": message_id, "decision": "COMMIT" if known else "UNKNOWN"}


def forgets_the_id(reply: Any, _: Any) -> tuple[int, Any]:
    return reply.status, {"decision": "UNKNOWN"}


def ignores_batches(reply: Any, asked: Any) -> tuple[int, Any]:
    batch = asked["type"] == "transaction.check.batch"
    return (200, {"verdicts": []}) if batch else (reply.status, reply.body)


FORGERIES = {
    "a forged signature is refused",
    "an altered body is refused",
    "another check's signature is refused",
    "an unsigned check is refused",
    "a signature that is no base64 is refused",
    "a stale check is refused",
    "a check from the future is refused",
    "a timestamp that is no number is refused",
    "another group's check is refused",
}
UNTOLD = {
    "an unknown transaction is never COMMIT",
    "a repeated check is answered again",
}
DECIDES = {"a known transaction is decided", "two signatures, the second fits"}
BATCHES = {"a batch is answered for each", "a batch of 100 is answered"}


@pytest.mark.parametrize(
    ("answer", "failing"),
    [
        (commits_all, UNTOLD | BATCHES),
        (answers_all, FORGERIES | BATCHES),
        (forgets_the_id, UNTOLD | DECIDES | BATCHES),
        (ignores_batches, BATCHES),
    ],
    ids=["commits whatever it is asked", "verifies nothing", "forgets the id", "has no batches"],
)
def test_a_wrong_endpoint_fails_the_cases_that_it_violates(
    simulate: Simulate, answer: Answer, failing: set[str]
) -> None:
    with bent(answer) as url:
        code, failed, stderr = simulate(url, "--batch", "--within", "30")
    assert set(failed) == failing
    assert code == 1
    assert f"{len(failing)} of" in stderr


def test_a_malformed_secret_is_refused_and_not_shown(simulate: Simulate) -> None:
    code, _, stderr = simulate("http://127.0.0.1:9/", secret="whsec_5")
    assert code == 2
    assert "whsec_5" not in stderr
    assert "whsec_ followed by base64" in stderr
