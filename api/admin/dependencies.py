"""The dependencies of the routes: a caller with a scope, the services, strict requests."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute

from api.admin.services import Services
from api.http.admission import require_scope
from api.http.json_body import UNKNOWN_NAME, parse, pointer_to
from api.http.problems import invalid
from outbox.access import Caller, Scope
from outbox.errors import InvalidMessageId, MessageNotFound
from outbox.messages.message_id import HalfId, Nonce, parse_message_id
from outbox.operators.message_view import OperatorAction
from outbox.telemetry.events import Event, get_logger

NO_STORE: Final = {"Cache-Control": "no-store"}
"""Headers of an answer with a secret: no cache between us and the caller keeps it."""


class StrictRequest(Request):
    """A request whose JSON is read as strictly as on the hot routes."""

    async def json(self) -> Any:
        """Return the parsed body; raises Problem."""
        return parse(await self.body())


class StrictRoute(APIRoute):
    """A route that reads its body and its query strictly: each parameter is known, and once."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, which gets a strict request."""
        handle = super().get_route_handler()
        names = {each.alias for each in self.dependant.query_params}
        known = None if names == {"query"} else names
        """None: a model, which refuses what it does not know."""

        async def serve(request: Request) -> Response:
            _judge_query(request, known)
            return await handle(StrictRequest(request.scope, request.receive))

        return serve


def services(request: Request) -> Services:
    """Return the services of the application."""
    found: Services = request.app.state.services
    return found


def needs(scope: Scope) -> Any:
    """Return a dependency that returns the caller, and refuses one without the scope."""

    def caller(request: Request) -> Caller:
        found: Caller = request.state.caller
        require_scope(found, scope)
        return found

    return Depends(caller)


def half_of(message_id: str) -> tuple[HalfId, Nonce]:
    """Return half id and random bits of the id in a path. Raises MessageNotFound."""
    try:
        return parse_message_id(message_id)
    except InvalidMessageId:
        raise MessageNotFound from None


def _judge_query(request: Request, known: set[str] | None) -> None:
    """Raise Problem for a parameter that is unknown, or twice there: the framework takes the last.

    ``known`` is None if the names are judged later.
    """
    seen = set[str]()
    for name, _ in request.query_params.multi_items():
        if known is not None and name not in known:
            raise invalid(pointer_to([name]), UNKNOWN_NAME)
        if name in seen:
            raise invalid(pointer_to([name]), "is present twice")
        seen.add(name)


def log_action(what: str, action: OperatorAction, **facts: Any) -> None:
    """Log an intervention, beside its entry in the audit log."""
    get_logger().info(
        Event.OPERATOR_ACTION, action=what, operator=action.operator, key_id=action.key_id, **facts
    )


MessageReader = Annotated[Caller, needs(Scope.MESSAGES_READ)]
ReportReader = Annotated[Caller, needs(Scope.REPORTS_READ)]
OperatorCaller = Annotated[Caller, needs(Scope.OPS_FORCE)]
Admin = Annotated[Caller, needs(Scope.ADMIN)]
ServicesDependency = Annotated[Services, Depends(services)]
