"""The check endpoint in real servers, each on a free loopback port."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette

from outbox_client import CheckEndpoint, fastapi, starlette, wsgi
from tests.fixtures_http_server import serving


@contextmanager
def asgi_server(app: Any) -> Iterator[str]:
    """Serve an application by uvicorn; yield the URL of its check endpoint."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    thread = Thread(target=server.run)
    thread.start()
    pause = Event()
    while not server.started and thread.is_alive():
        pause.wait(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/outbox/check"
    server.should_exit = True
    thread.join()


def fastapi_server(endpoint: starlette.Endpoint) -> AbstractContextManager[str]:
    """Serve the endpoint by FastAPI."""
    app = FastAPI()
    app.include_router(fastapi.check_router(endpoint))
    return asgi_server(app)


def starlette_server(endpoint: starlette.Endpoint) -> AbstractContextManager[str]:
    """Serve the endpoint by Starlette."""
    return asgi_server(Starlette(routes=[starlette.check_route(endpoint)]))


class QuietHandler(WSGIRequestHandler):
    """Logs nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def wsgi_server(endpoint: CheckEndpoint) -> Iterator[str]:
    """Serve the endpoint by WSGI; yield its URL."""
    app = wsgi.check_app(endpoint)
    server = make_server("127.0.0.1", 0, app, WSGIServer, QuietHandler)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}/outbox/check"
