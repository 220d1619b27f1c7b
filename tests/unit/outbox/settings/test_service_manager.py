"""The next command is one of what runs the programs."""

from __future__ import annotations

from pathlib import Path

from outbox.settings.service_manager import (
    ServiceManager,
    restart_command,
    service_manager,
    start_command,
)


def test_units_and_pods_are_seen_and_everything_else_is_the_stack_of_compose(
    tmp_path: Path,
) -> None:
    unit = tmp_path / "outbox-checker.service"
    assert service_manager({}, unit) is ServiceManager.COMPOSE
    unit.touch()
    assert service_manager({}, unit) is ServiceManager.SYSTEMD
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert service_manager(pod, unit) is ServiceManager.KUBERNETES


def test_a_store_that_only_its_owner_can_start_has_no_command() -> None:
    assert restart_command("kafka", ServiceManager.COMPOSE) == "docker compose restart kafka"
    assert start_command("kafka", ServiceManager.SYSTEMD) is None
    assert start_command("postgres", ServiceManager.KUBERNETES) is None
