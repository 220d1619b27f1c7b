"""`outbox dev --fetch`: only known releases of Kafka."""

from __future__ import annotations

from cli.invocation.exit_codes import ExitCode
from devservers.artifacts import KAFKA_RELEASES
from tests.e2e.fixtures_command import outbox


def test_an_unknown_release_of_kafka_is_refused_and_the_known_ones_are_named() -> None:
    ended = outbox("dev", "--fetch-kafka", "9.9.9")
    assert ended.code == ExitCode.USAGE
    assert ", ".join(KAFKA_RELEASES) in ended.err
