"""The next command is one of what runs the programs: those of docs/operations.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from outbox.settings.service_manager import (
    OURS,
    ServiceManager,
    restart_command,
    service_manager,
    start_command,
)
from tests.fixtures_paths import PROJECT

PAGE = (PROJECT / "docs" / "operations.md").read_text("utf-8")


def test_units_and_pods_are_seen_and_everything_else_is_the_stack_of_compose(
    tmp_path: Path,
) -> None:
    unit = tmp_path / "outbox-checker.service"
    assert service_manager({}, unit) is ServiceManager.COMPOSE
    unit.touch()
    assert service_manager({}, unit) is ServiceManager.SYSTEMD
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert service_manager(pod, unit) is ServiceManager.KUBERNETES


@pytest.mark.parametrize("part", OURS)
def test_the_page_for_operators_starts_our_programs_by_the_same_commands(part: str) -> None:
    assert all(f"`{start_command(part, manager)}`" in PAGE for manager in ServiceManager)


def test_a_store_that_only_its_owner_can_start_has_no_command() -> None:
    assert restart_command("kafka", ServiceManager.COMPOSE) == "docker compose restart kafka"
    assert start_command("kafka", ServiceManager.SYSTEMD) is None
    assert start_command("postgres", ServiceManager.KUBERNETES) is None
