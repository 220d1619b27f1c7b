"""The check endpoint as a FastAPI router."""

from fastapi import APIRouter, Request, Response

from outbox_client.starlette import DEFAULT_PATH, Endpoint, answer


def check_router(endpoint: Endpoint, path: str = DEFAULT_PATH) -> APIRouter:
    """Return a router that answers check-backs with POST at ``path``; include it in the app.

    It is not in the app's OpenAPI document: only the outbox service calls it.
    """
    router = APIRouter()

    async def answer_check(request: Request) -> Response:
        return await answer(endpoint, request)

    router.add_api_route(path, answer_check, methods=["POST"], include_in_schema=False)
    return router
