"""Builds a producer's check endpoint on a loopback port: real HTTP, answers of the test."""

from __future__ import annotations

import json
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

Check = dict[str, Any]
Answer = Callable[[web.Request, Check], Awaitable[web.StreamResponse]]


class Producer:
    """Answers checks with the given answers and keeps the requests."""

    def __init__(
        self, answer: Answer, port: int = 0, certificate: ssl.SSLContext | None = None
    ) -> None:
        """``port`` 0 is any free one; with a certificate the endpoint speaks TLS."""
        self.answer = answer
        self.asked: list[Check] = []
        self.headers: list[dict[str, str]] = []
        app = web.Application()
        app.router.add_post("/check", self._check)
        self._server = TestServer(app, port=port)
        self._certificate = certificate

    async def __aenter__(self) -> Producer:
        await self._server.start_server(ssl=self._certificate)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()

    @property
    def url(self) -> str:
        """The check URL to register."""
        scheme = "https" if self._certificate else "http"
        return f"{scheme}://127.0.0.1:{self._server.port}/check"

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._server.port is not None
        return self._server.port

    def asked_about(self, message_id: object) -> list[Check]:
        """Return the checks of one message, in order."""
        return [check for check in self.asked if check["message_id"] == str(message_id)]

    async def _check(self, request: web.Request) -> web.StreamResponse:
        data = json.loads(await request.text())["data"]
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.asked.extend(data.get("checks", [data]))
        return await self.answer(request, data)


def says(decision: str, **members: object) -> Answer:
    """Return an endpoint that gives every check the same verdict."""

    async def answer(_: web.Request, check: Check) -> web.StreamResponse:
        return verdict(check, decision, **members)

    return answer


def status(code: int, body: str = "", **headers: str) -> Answer:
    """Return an endpoint that answers every check with a status."""

    async def answer(_: web.Request, __: Check) -> web.StreamResponse:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return web.Response(status=code, text=body, headers=named)

    return answer


def in_turn(*answers: Answer) -> Answer:
    """Return an endpoint that gives these answers one after the other, the last for ever."""
    left = list(answers)

    async def answer(request: web.Request, check: Check) -> web.StreamResponse:
        current = left.pop(0) if len(left) > 1 else left[0]
        return await current(request, check)

    return answer


def verdict(check: Check, decision: str, **members: object) -> web.Response:
    """Return a valid answer to one check."""
    return web.json_response({"message_id": check["message_id"], "decision": decision, **members})
