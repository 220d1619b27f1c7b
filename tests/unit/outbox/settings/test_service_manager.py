"""The next command is one of what runs the programs."""

from __future__ import annotations

import pytest

from outbox.settings.service_manager import start_command


def test_a_store_that_only_its_owner_can_start_has_no_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert start_command("postgres") == "docker compose up --detach postgres"
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert start_command("api")
    assert start_command("postgres") is None
