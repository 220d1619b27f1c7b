"""The preflight check: what it admits, and what the log says of servers that do not answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from structlog.testing import capture_logs

from checker.relay.preflight import JudgeServer, Preflight
from checker.relay.threads import Admission
from outbox.errors import ConfigurationError, KafkaUnavailable
from outbox.operators.health_check import HealthCheck, health_check

UNSAFE = health_check("fsync", False, "off")

Answer = Sequence[HealthCheck] | Exception


def answering(*answers: Answer) -> JudgeServer:
    """Return a server's judge that answers or fails in turn."""
    turns: Iterator[Answer] = iter(answers)

    def judge() -> Sequence[HealthCheck]:
        answer = next(turns)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return judge


def test_a_server_that_answers_again_is_logged_once_as_back() -> None:
    away = KafkaUnavailable("no broker")
    preflight = Preflight(
        {"postgres": answering([], [], []), "kafka": answering(away, away, [])},
    )
    with capture_logs() as lines:
        admitted = [preflight.admit() for _ in range(3)]
    assert admitted == [Admission.UNREACHABLE, Admission.UNREACHABLE, Admission.ADMITTED]
    assert [(each["event"], each["dependency"], each["phase"]) for each in lines] == [
        ("dependency_lost", "kafka", "admission"),
        ("dependency_back", "kafka", "admission"),
    ]


def test_an_unsafe_setting_refuses_although_the_other_server_is_away() -> None:
    preflight = Preflight(
        {"postgres": answering([UNSAFE]), "kafka": answering(KafkaUnavailable("no broker"))}
    )
    with capture_logs(), pytest.raises(ConfigurationError, match="fsync: off"):
        preflight.refuse_unsafe()
