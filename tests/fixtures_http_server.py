"""Small HTTP servers on loopback, for what a test lets others call."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from threading import Thread


class QuietHandler(BaseHTTPRequestHandler):
    """Answers GET and POST by ``serve``; logs nothing."""

    def serve(self) -> None:
        """Answer the request."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Answer it, as any other."""
        self.serve()

    def do_POST(self) -> None:
        """Answer it, as any other."""
        self.serve()

    def do_DELETE(self) -> None:
        """Answer it, as any other."""
        self.serve()

    def body(self) -> bytes:
        """Read the body of the request."""
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def answer(self, body: bytes, status: int = 200, **headers: str) -> None:
        """Send an answer; in the name of a header ``_`` stands for ``-``."""
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer_json(self, document: object, status: int = 200) -> None:
        """Send a document as JSON."""
        self.answer(json.dumps(document).encode(), status, content_type="application/json")

    def handle(self) -> None:
        """Serve a connection; a caller that was killed, or trusts another one, is not an error."""
        try:
            super().handle()
        except (ConnectionError, ssl.SSLError):
            return

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class Server(ThreadingHTTPServer):
    """A thread a connection; many callers may connect at the same moment.

    The library's queue holds five: further callers wait for seconds, until their limit of time.
    """

    daemon_threads = True
    request_queue_size = 128


@contextmanager
def http_server(handler: type[QuietHandler], bind: str = "127.0.0.1") -> Iterator[str]:
    """Serve on a free port for the block; yield the URL on loopback, without a path."""
    server = Server((bind, 0), handler)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}"


@contextmanager
def serving(server: HTTPServer) -> Iterator[None]:
    """Let a server answer for the block, in a thread of its own; close it afterwards."""
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
