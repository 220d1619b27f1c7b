"""Serves the HTTP API and the console until SIGTERM (exit 0) or Ctrl-C (130)."""

from __future__ import annotations

import argparse
import logging
import resource
import signal
import socket
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import uvicorn

from api.from_settings import refuse_insecure_bind
from api.http.http11 import Http11
from api.metrics.shared_metrics import Workers, shared_directory
from api.wiring import application, refuse_to_start
from outbox.errors import ConfigurationError
from outbox.settings.catalogue import Settings
from outbox.settings.environment import load_settings, process_environment, traces_are_sent
from outbox.settings.secret_texts import secret_texts
from outbox.telemetry.events import configure_logging, log_style, log_uncaught_errors
from outbox.telemetry.redaction import redaction

OK: Final = 0
ERROR: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130
BACKLOG: Final = 2048
GRACE_SECONDS: Final = 35
"""How long a stop waits for running requests: more than the longest ``Prefer: wait``."""
SILENT_WORKER_SECONDS: Final = 30
"""How long a worker may not answer before another replaces it: more than a start takes, also on a
busy machine. After uvicorn's 5 s such workers would be killed again and again."""
IDLE_SECONDS: Final = 75
"""How long a connection may wait for its next request: longer than a proxy keeps it, so that no
proxy sends a request into a connection that is being closed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve; an invalid setting or an address in use is one line on stderr and exit 2."""
    bind = _parser().parse_args(arguments).bind
    try:
        settings = load_settings(overrides={"http_bind": bind} if bind else None)
        configure_logging(settings.log_level, log_style(), secret_texts(settings))
        log_uncaught_errors()
        logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
        host, port = read_bind(settings.http_bind)
        refuse_insecure_bind(settings, host)
        traces = traces_are_sent(process_environment())
        refuse_to_start(settings)
        with _listen(host, port) as listener:
            return _serve(settings, host, listener, traces=traces)
    except ConfigurationError as error:
        print(redaction()(f"outbox-api: {error}"), file=sys.stderr)  # noqa: T201
        return USAGE


def read_bind(bind: str) -> tuple[str, int]:
    """Split ``host:port``; raises ConfigurationError."""
    host, _, port = bind.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise ConfigurationError(f"OUTBOX_HTTP_BIND: {bind!r} is not host:port")
    return host.strip("[]") or "0.0.0.0", int(port)


def server_config(app: Any, *, workers: int = 1) -> uvicorn.Config:
    """Return the server's configuration; for several workers ``app`` makes the application.

    A reverse proxy in front ends slow, idle and too many connections (docs/security.md).
    """
    return uvicorn.Config(
        app,
        factory=workers > 1,
        workers=workers,
        http=Http11,
        ws="none",
        loop="uvloop",
        lifespan="on",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_worker_healthcheck=SILENT_WORKER_SECONDS,
    )


def _serve(settings: Settings, host: str, listener: socket.socket, *, traces: bool) -> int:
    """Serve in this process, or in several processes that share the listener."""
    workers = settings.http_workers
    multiple = workers > 1
    make = partial(application, settings, host, traces=traces)
    app = make if multiple else make()
    config = server_config(app, workers=workers)
    _allow_open_files()
    signal.signal(signal.SIGTERM, lambda *_: None)  # raised again by the server once it is down
    if multiple:
        with shared_directory():
            Workers(config, sockets=[listener]).run()
        return OK
    server = uvicorn.Server(config)
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        return INTERRUPTED
    return OK if server.started else ERROR


def _allow_open_files() -> None:
    """Raise this process' limit of open files as far as the system lets it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigurationError(f"OUTBOX_HTTP_BIND: {host}:{port}: {error.strerror}") from None
    listener.set_inheritable(True)
    return listener


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="outbox-api", description=__doc__, epilog="Example: outbox-api --bind 127.0.0.1:8080"
    )
    parser.add_argument(
        "--bind", metavar="HOST:PORT", help="address to listen on, instead of OUTBOX_HTTP_BIND"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
