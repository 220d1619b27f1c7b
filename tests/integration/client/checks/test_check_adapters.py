"""The check endpoint in real servers: FastAPI, Starlette and WSGI give the same answers."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import httpx2
import pytest

from outbox_client import AsyncCheckEndpoint, Check, CheckEndpoint, LocalTransactionState
from tests.fixtures_plain_http import NO_TLS
from tests.integration.client.checks.fixtures_check_servers import (
    fastapi_server,
    starlette_server,
    wsgi_server,
)
from tests.unit.outbox_client.fixtures_checks import (
    GROUP,
    OTHER_SECRET,
    SECRET,
    batch,
    make_check,
    signed_headers,
    single,
)


class Listener:
    """Answers COMMIT to every check, and counts."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def check_local_transaction(self, check: Check, /) -> LocalTransactionState:
        self.asked.append(check.message_id)
        return LocalTransactionState.COMMIT


SERVERS = [fastapi_server, starlette_server, wsgi_server]


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture(params=SERVERS, ids=["fastapi", "starlette", "wsgi"])
def check_url(request: pytest.FixtureRequest, listener: Listener) -> Iterator[str]:
    server: Callable[[CheckEndpoint], AbstractContextManager[str]] = request.param
    with CheckEndpoint(GROUP, SECRET, listener) as endpoint, server(endpoint) as url:
        yield url


def ask(url: str, body: bytes, *secrets: str) -> httpx2.Response:
    with httpx2.Client(trust_env=False, verify=NO_TLS) as http:
        return http.post(url, content=body, headers=signed_headers(body, *secrets))


def test_a_signed_check_is_answered(check_url: str) -> None:
    response = ask(check_url, single())
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("application/json")
    assert response.json()["decision"] == "COMMIT"


def test_a_batch_is_answered(check_url: str) -> None:
    response = ask(check_url, batch(make_check("a"), make_check("b")))
    assert [verdict["message_id"] for verdict in response.json()["verdicts"]] == ["a", "b"]


def test_the_body_is_verified_as_it_came(check_url: str) -> None:
    respaced = json.dumps(json.loads(single()), indent=2, ensure_ascii=False).encode()
    assert ask(check_url, respaced).status_code == 200


@pytest.mark.parametrize("open_server", [fastapi_server, starlette_server])
def test_an_asynchronous_listener_answers_on_the_servers_event_loop(
    open_server: Callable[[AsyncCheckEndpoint], AbstractContextManager[str]],
) -> None:
    class OnTheLoop(Listener):
        async def check_local_transaction(  # type: ignore[override]
            self, check: Check, /
        ) -> LocalTransactionState:
            asyncio.get_running_loop()
            return super().check_local_transaction(check)

    with open_server(AsyncCheckEndpoint(GROUP, SECRET, OnTheLoop())) as url:
        assert ask(url, single()).json()["decision"] == "COMMIT"
        assert ask(url, single(), OTHER_SECRET).status_code == 401
