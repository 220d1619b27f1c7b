"""Commands for what runs our programs here: compose, Kubernetes, or something unknown."""

from __future__ import annotations

from typing import Final

from outbox.settings.environment import process_environment

OURS: Final = ("api", "checker")
"""The other parts are the stores, which only compose runs too."""


def compose_command(words: str) -> str | None:
    """Return a command of compose; None if docker-compose.yml did not start this program."""
    return f"docker compose {words}" if process_environment().get("RUN_BY") == "compose" else None


def start_command(part: str) -> str | None:
    """Return the command that starts a part which may have ended; None if nobody knows it."""
    if part in OURS and "KUBERNETES_SERVICE_HOST" in process_environment():
        return f"kubectl --namespace outbox rollout restart deployment outbox-{part}"
    return compose_command(f"up --detach {part}")


def kafka_command(tool: str, bootstrap_servers: str) -> str:
    """Return the first words of a command of Kafka's tools, which in compose its container has."""
    path = compose_command("exec kafka /opt/kafka/bin/") or ""
    return f"{path}{tool} --bootstrap-server {bootstrap_servers}"
