"""The check endpoint as a Starlette route."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from outbox_client.check_endpoint import BODY_MAX_BYTES, CheckEndpoint, Reply, refusal

DEFAULT_PATH = "/outbox/check"


def check_route(endpoint: CheckEndpoint, path: str = DEFAULT_PATH) -> Route:
    """Return the POST route that answers check-backs at ``path``."""

    async def answer_check(request: Request) -> Response:
        return await answer(endpoint, request)

    return Route(path, answer_check, methods=["POST"])


async def answer(endpoint: CheckEndpoint, request: Request) -> Response:
    """Answer one check-back; the listener runs off the event loop."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_MAX_BYTES:
            return _response(refusal(413, "the check is too long"))
    reply = await run_in_threadpool(endpoint.handle, request.headers, bytes(body))
    return _response(reply)


def _response(reply: Reply) -> Response:
    return Response(reply.body, reply.status, media_type=reply.content_type)
