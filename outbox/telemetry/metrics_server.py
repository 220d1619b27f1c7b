"""Serves metrics on an address of their own, by prometheus_client's application in a thread."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Thread
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.registry import Collector

from outbox.errors import ConfigurationError

STOP_SECONDS: Final = 0.05
"""How long a stop takes at most."""


@contextmanager
def metrics_server(
    setting: str, bind: str, metrics: Collector, *, shared: bool = False
) -> Iterator[None]:
    """Serve for the block; ``setting`` is the name of the address in an error.

    ``shared``: several processes listen on it, and one of them answers. Raises ConfigurationError.
    """
    host, _, port = bind.rpartition(":")

    class Server(ThreadingWSGIServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        allow_reuse_port = shared

    try:
        server = make_server(
            host.strip("[]"), int(port), make_wsgi_app(metrics), Server, _SilentHandler
        )
    except (OSError, ValueError, OverflowError) as error:
        raise ConfigurationError(f"{setting}: {bind}: {error}") from None
    serve = partial(server.serve_forever, STOP_SECONDS)
    thread = Thread(target=serve, name="outbox-metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _SilentHandler(WSGIRequestHandler):
    """Writes no line for a request."""

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""
