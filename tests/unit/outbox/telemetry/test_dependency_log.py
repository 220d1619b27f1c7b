"""The loss of a dependency and its return are one line each, however often they are noted."""

from __future__ import annotations

from structlog.testing import capture_logs

from outbox.errors import KafkaUnavailable
from outbox.telemetry.dependency_log import DependencyLog

LOST = {
    "event": "dependency_lost",
    "log_level": "warning",
    "dependency": "kafka",
    "chore": "orphans",
    "error": "no broker answers",
}
BACK = {
    "event": "dependency_back",
    "log_level": "info",
    "dependency": "kafka",
    "chore": "orphans",
}


def test_a_loss_and_a_return_are_one_line_each() -> None:
    kafka = DependencyLog("kafka", chore="orphans")
    with capture_logs() as lines:
        for _ in range(3):
            kafka.lost(KafkaUnavailable("no broker answers"))
        for _ in range(3):
            kafka.back()
    assert lines == [LOST, BACK]


def test_a_dependency_that_never_was_lost_is_not_back() -> None:
    with capture_logs() as lines:
        DependencyLog("kafka").back()
    assert lines == []
