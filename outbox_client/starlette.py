"""The check endpoint as a Starlette route."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from outbox_client.checks.async_endpoint import AsyncCheckEndpoint
from outbox_client.checks.endpoint import CheckEndpoint
from outbox_client.checks.verdicts import BODY_MAX_BYTES, Reply, refusal

DEFAULT_PATH = "/outbox/check"

Endpoint = CheckEndpoint | AsyncCheckEndpoint


def check_route(endpoint: Endpoint, path: str = DEFAULT_PATH) -> Route:
    """Return the POST route that answers check-backs at ``path``."""

    async def answer_check(request: Request) -> Response:
        return await answer(endpoint, request)

    return Route(path, answer_check, methods=["POST"])


async def answer(endpoint: Endpoint, request: Request) -> Response:
    """Answer one check-back; a listener that is not asynchronous runs off the event loop."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_MAX_BYTES:
            return _response(refusal(413, "the check is too long"))
    if isinstance(endpoint, AsyncCheckEndpoint):
        return _response(await endpoint.handle(request.headers, bytes(body)))
    return _response(await run_in_threadpool(endpoint.handle, request.headers, bytes(body)))


def _response(reply: Reply) -> Response:
    return Response(reply.body, reply.status, media_type=reply.content_type)
