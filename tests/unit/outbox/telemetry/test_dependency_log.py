"""The loss of a dependency and its return are one line each, however often they are noted."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from outbox.errors import KafkaUnavailable
from outbox.telemetry import dependency_log
from outbox.telemetry.dependency_log import DependencyLog

LOSS = KafkaUnavailable("no broker answers")


def test_a_loss_and_a_return_are_one_line_each() -> None:
    kafka = DependencyLog("kafka", task="orphans")
    with capture_logs() as lines:
        for _ in range(3):
            kafka.lost(LOSS)
        for _ in range(3):
            kafka.back()
    assert [(line["event"], line["dependency"], line["task"]) for line in lines] == [
        ("dependency_lost", "kafka", "orphans"),
        ("dependency_back", "kafka", "orphans"),
    ]


def test_a_loss_that_lasts_is_said_again_and_so_is_another_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kafka, full = DependencyLog("kafka", task="orphans"), KafkaUnavailable("disk full: 7")
    with capture_logs() as lines:
        for error in (LOSS, full, LOSS, KafkaUnavailable("disk full: 8")):
            kafka.lost(error)
        monkeypatch.setattr(dependency_log, "REPEAT_SECONDS", 0.0)
        kafka.lost(full)
    assert [line["error"] for line in lines] == [str(LOSS), str(full), str(full)]
