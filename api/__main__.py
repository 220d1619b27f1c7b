"""``outbox-api``: serves the REST API until SIGTERM (exit 0) or Ctrl-C (130)."""

from __future__ import annotations

import argparse
import ipaddress
import logging
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Final

import uvicorn

from api.http.protocol import BoundedHttpProtocol
from api.metrics.shared_metrics import Workers, shared_directory
from api.wiring import build, refuse_to_start
from outbox.errors import ConfigurationError
from outbox.settings.catalogue import Settings
from outbox.settings.environment import load_settings
from outbox.telemetry.events import configure_logging

OK: Final = 0
ERROR: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130
BACKLOG: Final = 2048
KEEP_ALIVE_SECONDS: Final = 75
GRACE_SECONDS: Final = 35
"""How long a stop waits for running requests: more than the longest ``Prefer: wait``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve; an invalid setting or an address in use is one line on stderr and exit 2."""
    bind = _parser().parse_args(arguments).bind
    try:
        settings = load_settings(overrides={"http_bind": bind} if bind else None)
        configure_logging(settings.log_level, settings.log_format)
        logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
        host, port = read_bind(settings.http_bind)
        refuse_insecure_bind(settings, host)
        refuse_to_start(settings)
        with _listen(host, port) as listener:
            return _serve(settings, listener)
    except ConfigurationError as error:
        print(f"outbox-api: {error}", file=sys.stderr)  # noqa: T201
        return USAGE


def read_bind(bind: str) -> tuple[str, int]:
    """Split ``host:port``; raises ConfigurationError."""
    host, _, port = bind.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise ConfigurationError(f"OUTBOX_HTTP_BIND: {bind!r} is not host:port")
    return host.strip("[]") or "0.0.0.0", int(port)


def refuse_insecure_bind(settings: Settings, host: str) -> None:
    """Refuse to serve without authentication on an address that other machines can reach."""
    if settings.auth_mode == "dev-insecure" and not is_loopback(host):
        raise ConfigurationError(
            "OUTBOX_AUTH_MODE=dev-insecure listens on loopback only; OUTBOX_HTTP_BIND is not"
        )


def is_loopback(host: str) -> bool:
    """Return True for a bind address that only this machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _serve(settings: Settings, listener: socket.socket) -> int:
    """Serve in this process, or in several processes that share the listener."""
    multiple = settings.http_workers > 1
    config = uvicorn.Config(
        "api.wiring:application" if multiple else build(settings),
        factory=multiple,
        workers=settings.http_workers,
        http=BoundedHttpProtocol,
        ws="none",
        loop="uvloop",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
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


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigurationError(f"OUTBOX_HTTP_BIND: {host}:{port}: {error.strerror}") from None
    listener.set_inheritable(True)
    return listener


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="outbox-api", description=__doc__)
    parser.add_argument("--bind", metavar="HOST:PORT", help="instead of OUTBOX_HTTP_BIND")
    return parser


if __name__ == "__main__":
    sys.exit(main())
