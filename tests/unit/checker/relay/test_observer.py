"""A halt is said to be one."""

from __future__ import annotations

from structlog.testing import capture_logs

from checker.relay.observer import RelayObserver
from outbox.relay.protocol.state import HaltReason, Phase, Relay
from outbox.telemetry.metrics import Metrics
from tests.fixtures_replacing import replace
from tests.unit.checker.checks.fixtures_fakes import ManualClock


def test_a_halt_is_logged_as_a_halt() -> None:
    observer = RelayObserver(Metrics(), ManualClock())
    verify = Relay(shard=3, phase=Phase.VERIFY)
    with capture_logs() as lines:
        observer.moved(verify, replace(verify, phase=Phase.HALT, halt=HaltReason.CHAIN_BROKEN))
    assert [line["event"] for line in lines] == ["relay_halted"]
