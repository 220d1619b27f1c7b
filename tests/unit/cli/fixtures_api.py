"""An API that gives one answer to everything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from cli.__main__ import run
from tests.fixtures_http_server import QuietHandler, http_server


@dataclass(slots=True)
class FixedApi:
    """A running one, and what it was asked."""

    url: str
    asked: list[tuple[str, Any]] = field(default_factory=list)
    """Method with path, and the document that came with it."""

    def run(self, *words: str) -> int:
        """Run a command with this API; return its exit code."""
        return run(["--url", self.url, *words])


@contextmanager
def api_that_answers(document: object, status: int = 200) -> Iterator[FixedApi]:
    """Run such an API for the block."""

    class Handler(QuietHandler):
        def serve(self) -> None:
            body = self.body()
            api.asked.append((f"{self.command} {self.path}", json.loads(body) if body else None))
            self.answer_json(document, status)

    with http_server(Handler) as url:
        api = FixedApi(url)
        yield api
