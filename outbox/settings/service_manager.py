"""The command that starts a part of the installation again, by what runs our programs here."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from outbox.settings.environment import process_environment

OURS: Final = ("api", "checker")
"""The other parts are the stores, which only compose runs too."""


class ServiceManager(StrEnum):
    """What runs our programs."""

    COMPOSE = "compose"
    KUBERNETES = "kubernetes"


def service_manager(environment: Mapping[str, str] | None = None) -> ServiceManager:
    """Return what runs this program: Kubernetes where it says so, otherwise compose."""
    given = process_environment() if environment is None else environment
    in_pod = "KUBERNETES_SERVICE_HOST" in given
    return ServiceManager.KUBERNETES if in_pod else ServiceManager.COMPOSE


def start_command(part: str, manager: ServiceManager | None = None) -> str | None:
    """Return the command that starts a part which may have ended; None for a foreign store."""
    manager = manager or service_manager()
    if manager is ServiceManager.COMPOSE:
        return f"docker compose up --detach {part}"
    return restart_command(part, manager)


def restart_command(part: str, manager: ServiceManager | None = None) -> str | None:
    """Return the command that ends a part and starts it again; None for a foreign store."""
    manager = manager or service_manager()
    if manager is ServiceManager.COMPOSE:
        return f"docker compose restart {part}"
    if part not in OURS:
        return None
    return f"kubectl --namespace outbox rollout restart deployment outbox-{part}"
