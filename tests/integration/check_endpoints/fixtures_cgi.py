"""Serves the example endpoint in shell, which is a CGI program."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tests.fixtures_http_server import QuietHandler, http_server


@contextmanager
def cgi_server(command: Sequence[str], env: Mapping[str, str]) -> Iterator[str]:
    """Serve a CGI program (RFC 3875): the headers in its environment, the body on its stdin."""

    class Handler(QuietHandler):
        def serve(self) -> None:
            body = self.body()
            headers = {
                "HTTP_" + name.upper().replace("-", "_"): text
                for name, text in self.headers.items()
            }
            length = {"CONTENT_LENGTH": str(len(body))}
            done = subprocess.run(
                command, input=body, env={**env, **headers, **length}, stdout=-1, check=True
            )
            head, _, answer = done.stdout.partition(b"\r\n\r\n")
            status, content_type = head.decode().split("\r\n")
            name, text = content_type.split(": ", 1)
            self.answer(answer, int(status.removeprefix("Status: ")), **{name: text})

    with http_server(Handler) as url:
        yield f"{url}/outbox/check"
