"""The command that starts a part of the installation again, by what runs our programs here."""

from __future__ import annotations

from typing import Final

from outbox.settings.environment import process_environment

OURS: Final = ("api", "checker")
"""The other parts are the stores, which only compose runs too."""


def runs_in_kubernetes() -> bool:
    """Return whether this program runs in a pod; otherwise compose is taken to run it."""
    return "KUBERNETES_SERVICE_HOST" in process_environment()


def start_command(part: str) -> str | None:
    """Return the command that starts a part which may have ended; None for a foreign store."""
    if not runs_in_kubernetes():
        return f"docker compose up --detach {part}"
    if part not in OURS:
        return None
    return f"kubectl --namespace outbox rollout restart deployment outbox-{part}"
