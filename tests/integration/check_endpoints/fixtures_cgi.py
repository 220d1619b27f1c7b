"""Serves the example endpoint in shell, which is a CGI program."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def cgi_server(command: Sequence[str], env: Mapping[str, str]) -> Iterator[str]:
    """Serve a CGI program (RFC 3875): the headers in its environment, the body on its stdin."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
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
            self.send_response(int(status.removeprefix("Status: ")))
            self.send_header(*content_type.split(": ", 1))
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/outbox/check"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
