"""Waits until the API has finished a bulk action."""

from threading import Event
from typing import Any

from cli.service.api_client import ApiClient

BULK = "/v1/bulk-actions"
LOOK_SECONDS = 0.2


def wait_finished(api: ApiClient, started: dict[str, Any]) -> dict[str, Any]:
    """Return a bulk action once it is finished or cancelled; it continues without this wait."""
    action, never = started, Event()
    while action["status"] not in ("finished", "cancelled"):
        never.wait(LOOK_SECONDS)
        action = api.get(f"{BULK}/{action['id']}")
    return action
