from __future__ import annotations

import pytest

from checker.relay.observer import RelayObserver
from outbox.errors import (
    CursorMoved,
    DatabaseUnavailable,
    KafkaUnavailable,
    OutboxError,
    UnsafeServer,
)
from outbox.relay.protocol.state import Failure, HaltReason, Phase, Relay
from outbox.telemetry.metrics import Metrics
from tests.fixtures_replacing import replace
from tests.unit.checker.checks.fixtures_fakes import ManualClock
from tests.unit.checker.relay.fixtures_committed import message_of

VERIFY = Relay(shard=3, phase=Phase.VERIFY)


@pytest.mark.parametrize(
    ("failure", "error", "event", "back"),
    [
        (Failure.DATABASE, DatabaseUnavailable("lost"), "dependency_lost", 1),
        (Failure.KAFKA, KafkaUnavailable("lost"), "dependency_lost", 1),
        (Failure.DATABASE, UnsafeServer("fsync: off"), "server_unsafe", 1),
        (Failure.OVERTAKEN, CursorMoved("moved"), "relay_fenced", 0),
    ],
)
def test_a_failure_is_logged_once_by_its_meaning_until_the_relay_runs(
    failure: Failure,
    error: OutboxError,
    event: str,
    back: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    observer = RelayObserver(Metrics(), ManualClock())
    observer.failed(VERIFY, failure, error)
    observer.failed(VERIFY, failure, error)
    observer.moved(VERIFY, replace(VERIFY, phase=Phase.RUN))
    logged = "".join(capsys.readouterr())
    assert (logged.count(event), logged.count("dependency_back")) == (1, back)


def test_a_halt_is_logged_as_a_halt(capsys: pytest.CaptureFixture[str]) -> None:
    observer = RelayObserver(Metrics(), ManualClock())
    observer.moved(VERIFY, replace(VERIFY, phase=Phase.HALT, halt=HaltReason.CHAIN_BROKEN))
    logged = "".join(capsys.readouterr())
    assert ("relay_halted" in logged, "publish_failed" in logged) == (True, False)


def test_a_refusal_names_the_trace_of_its_message(capsys: pytest.CaptureFixture[str]) -> None:
    observer = RelayObserver(Metrics(), ManualClock())
    trace = "0af7651916cd43dd8448eb211c80319c"
    message = message_of(7)._replace(traceparent=f"00-{trace}-b7ad6b7169203331-01")
    observer.refused(VERIFY, message, "MSG_SIZE_TOO_LARGE")
    logged = "".join(capsys.readouterr())
    assert "publish_failed" in logged
    assert f"trace_id={trace}" in logged
