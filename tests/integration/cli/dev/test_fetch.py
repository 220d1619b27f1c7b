"""`outbox dev --fetch`: only known releases of Kafka, and a set-up without a class archive."""

from __future__ import annotations

import pytest

from cli.dev.fetch import record_spark
from cli.invocation.exit_codes import ExitCode
from devservers.artifacts import KAFKA_RELEASES
from tests.e2e.fixtures_command import outbox


def test_an_unknown_release_of_kafka_is_refused_and_the_known_ones_are_named() -> None:
    ended = outbox("dev", "--fetch-kafka", "9.9.9")
    assert ended.code == ExitCode.USAGE
    assert ", ".join(KAFKA_RELEASES) in ended.err


def test_the_set_up_goes_on_without_sparks_class_archive(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    said: list[str] = []
    record_spark(said.append)
    assert "no `java` on the PATH" in capfd.readouterr().err
    assert said[-1].endswith("python -m spark.jvm.class_archive_builder")
