"""Following an action on many messages until the API has finished it."""

from threading import Event
from typing import Any

from cli.service.api_client import ApiClient

BULK = "/v1/bulk-actions"
LOOK_SECONDS = 0.2


def followed(api: ApiClient, begun: dict[str, Any]) -> dict[str, Any]:
    """Wait until an action on many is finished; it goes on if nobody waits."""
    action, never = begun, Event()
    while action["status"] != "finished":
        never.wait(LOOK_SECONDS)
        action = api.get(f"{BULK}/{action['id']}")
    return action
