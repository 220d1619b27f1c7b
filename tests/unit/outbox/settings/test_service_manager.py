"""A command is printed only where it runs: in compose, in Kubernetes, or everywhere."""

from __future__ import annotations

import pytest

from outbox.settings.service_manager import compose_command, kafka_command, start_command
from tests.unit.deploy.test_deployment import SERVICES

TOPICS = "kafka-topics.sh --bootstrap-server kafka:9092"


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBERNETES_SERVICE_HOST", "RUN_BY"):
        monkeypatch.delenv(name, raising=False)


def test_where_nobody_knows_what_runs_the_programs_no_container_is_named() -> None:
    assert (start_command("api"), start_command("postgres"), compose_command("ps")) == (None,) * 3
    assert kafka_command("kafka-topics.sh", "kafka:9092") == TOPICS


def test_a_container_of_the_stack_names_commands_of_compose(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RUN_BY", SERVICES["api"]["environment"]["RUN_BY"])
    assert start_command("postgres") == "docker compose up --detach postgres"
    inside = f"docker compose exec kafka /opt/kafka/bin/{TOPICS}"
    assert kafka_command("kafka-topics.sh", "kafka:9092") == inside


def test_a_pod_starts_our_programs_and_not_the_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert (
        start_command("api") == "kubectl --namespace outbox rollout restart deployment outbox-api"
    )
    assert start_command("postgres") is None
