"""The next command is one of what runs the programs."""

from __future__ import annotations

from outbox.settings.service_manager import (
    ServiceManager,
    restart_command,
    service_manager,
    start_command,
)


def test_pods_are_seen_and_everything_else_is_the_stack_of_compose() -> None:
    assert service_manager({}) is ServiceManager.COMPOSE
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert service_manager(pod) is ServiceManager.KUBERNETES


def test_a_store_that_only_its_owner_can_start_has_no_command() -> None:
    assert restart_command("kafka", ServiceManager.COMPOSE) == "docker compose restart kafka"
    assert start_command("api", ServiceManager.KUBERNETES)
    assert start_command("postgres", ServiceManager.KUBERNETES) is None
