"""The paths of the console: what each shows, and what each form does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.responses import Response

from api.console.pages import (
    audit,
    bulk_action,
    key,
    login,
    message,
    producer_group,
    publishing,
    reconciliation,
    start,
    system,
    unresolved,
)
from api.console.visit import Visit

Handler = Callable[[Visit], Awaitable[Response]]


def act(route: str, path: str, done: str) -> Handler:
    """Return what sends a form's fields to a route of the API, then shows a page."""

    async def sent(visit: Visit) -> Response:
        await visit.api.post(route.format(**visit.at), visit.filled_in)
        return visit.see(path.format(**visit.at), done=done)

    return sent


MESSAGE: Final = "/messages/{message_id}"
MESSAGE_ROUTE: Final = "/v1/half-messages/{message_id}"
GROUP: Final = "/groups/{name}"
GROUP_ROUTE: Final = "/v1/producer-groups/{name}"

NAVIGATION: Final = (
    ("/", "Needs you"),
    ("/messages", "Messages"),
    ("/parked", "Parked"),
    ("/groups", "Groups"),
    ("/publishing", "Publishing"),
    ("/reconciliations", "Reconciliation"),
    ("/audit", "Audit"),
    ("/keys", "Keys"),
    ("/system", "System"),
)
PAGES: Final[dict[str, Handler]] = {
    "": start.show,
    "/": start.show,
    "/messages": unresolved.show,
    "/export": unresolved.export,
    "/find": unresolved.find,
    "/login": login.show,
    MESSAGE: message.show,
    "/parked": unresolved.show_parked,
    "/groups": producer_group.show_all,
    GROUP: producer_group.show,
    "/publishing": publishing.show,
    "/reconciliations": reconciliation.show_all,
    "/reconciliations/{run_id}": reconciliation.show,
    "/reconciliations/{run_id}/report.{form}": reconciliation.download,
    "/audit": audit.show,
    "/audit/export": audit.export,
    "/keys": key.show,
    "/system": system.show,
    "/bulk-actions/plan": bulk_action.plan,
    "/bulk-actions/{action_id}": bulk_action.show,
}
FORMS: Final[dict[str, Handler]] = {
    "/login": login.log_in,
    "/logout": login.log_out,
    f"{MESSAGE}/recheck": act(f"{MESSAGE_ROUTE}/recheck", MESSAGE, "rechecked"),
    f"{MESSAGE}/force-end": act(f"{MESSAGE_ROUTE}/force-end", MESSAGE, "ended"),
    f"{GROUP}/test": producer_group.test,
    f"{GROUP}/simulate": producer_group.simulate,
    f"{GROUP}/pause": act(f"{GROUP_ROUTE}/pause", GROUP, "paused"),
    f"{GROUP}/resume": act(f"{GROUP_ROUTE}/resume", GROUP, "resumed"),
    f"{GROUP}/close-breaker": act(f"{GROUP_ROUTE}/resume", GROUP, "breaker-closed"),
    "/held/{message_id}": publishing.settle,
    "/keys/{key_id}/revoke": key.revoke,
    "/bulk-actions": bulk_action.begin,
    "/bulk-actions/{action_id}/cancel": bulk_action.cancel,
}
