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
    overview,
    parked,
    producer_group,
    publishing,
    reconciliation,
    system,
    unresolved,
)
from api.console.visit import Visit

Handler = Callable[[Visit], Awaitable[Response]]

NAVIGATION: Final = (
    ("/", "Unresolved"),
    ("/overview", "Overview"),
    ("/parked", "Parked"),
    ("/groups", "Producer groups"),
    ("/publishing", "Publishing"),
    ("/reconciliations", "Reconciliation"),
    ("/audit", "Audit"),
    ("/keys", "Keys"),
    ("/system", "System"),
)
PAGES: Final[dict[str, Handler]] = {
    "": unresolved.show,
    "/": unresolved.show,
    "/export": unresolved.export,
    "/find": unresolved.find,
    "/login": login.show,
    "/overview": overview.show,
    "/messages/{message_id}": message.show,
    "/parked": parked.show,
    "/groups": producer_group.show_all,
    "/groups/{name}": producer_group.show,
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
    "/messages/{message_id}/recheck": message.recheck,
    "/messages/{message_id}/force-end": message.force_end,
    "/groups/{name}/test": producer_group.test,
    "/groups/{name}/simulate": producer_group.simulate,
    "/groups/{name}/pause": producer_group.pause,
    "/groups/{name}/resume": producer_group.resume,
    "/held/{message_id}": publishing.settle,
    "/keys/{key_id}/revoke": key.revoke,
    "/bulk-actions": bulk_action.begin,
    "/bulk-actions/{action_id}/cancel": bulk_action.cancel,
}
