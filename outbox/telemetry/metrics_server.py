"""Serves metrics on an address of their own, by prometheus_client's server in a thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import start_http_server
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.registry import Collector

from outbox.errors import ConfigurationError

ANY_ADDRESS: Final = "0.0.0.0"


@contextmanager
def metrics_server(
    setting: str, bind: str, metrics: Collector, *, shared: bool = False
) -> Iterator[None]:
    """Serve for the block; ``setting`` is the name of the address in an error.

    ``shared``: several processes listen on it, and one of them answers. Raises ConfigurationError.
    """
    host, _, port = bind.rpartition(":")
    ThreadingWSGIServer.allow_reuse_port = shared
    try:
        server, thread = start_http_server(int(port), host.strip("[]") or ANY_ADDRESS, metrics)
    except (OSError, ValueError, OverflowError) as error:
        raise ConfigurationError(f"{setting}: {bind}: {error}") from None
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
