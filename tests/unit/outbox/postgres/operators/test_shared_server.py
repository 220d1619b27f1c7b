"""The doctor's warnings about what others leave to us of a shared server."""

from outbox.operators.health_check import HealthStatus
from outbox.postgres.operators.shared_server import (
    age_health,
    connection_health,
    reader_health,
    setting_health,
)

SETTINGS = {"autovacuum": "on", "track_counts": "on", "track_activities": "on"}


def test_each_setting_that_upkeep_needs_is_a_warning_when_it_is_off() -> None:
    assert {each.verdict for each in setting_health(SETTINGS)} == {HealthStatus.OK}
    for name in SETTINGS:
        found = {each.check: each for each in setting_health({**SETTINGS, name: "off"})}
        assert found[name].verdict is HealthStatus.WARNING
        assert found[name].detail.startswith("off: without it")


def test_a_database_that_nears_the_end_of_its_ids_is_named() -> None:
    assert age_health("box", "transactions", 400_000_000).verdict is HealthStatus.OK
    near = age_health("box", "multixacts", 1_500_000_000)
    assert near.verdict is HealthStatus.WARNING
    assert "1500 million multixacts" in near.detail
    assert "VACUUM (FREEZE) in database box" in near.detail
    assert age_health("box", "transactions", 2_100_000_000).verdict is HealthStatus.FAILED


def test_who_keeps_old_rows_for_millions_of_transactions_is_named() -> None:
    slot = {"holder": "replication slot dr (not in use)", "command": "SELECT 1", "age": 4_999_999}
    for young in (None, slot):
        assert reader_health(young).verdict is HealthStatus.OK
    found = reader_health({**slot, "age": 12_000_000})
    assert found.verdict is HealthStatus.WARNING
    assert found.detail.startswith("replication slot dr (not in use) keeps what has changed")
    assert found.command == """psql "$OUTBOX_DATABASE_URL" -xc 'SELECT 1'"""


def test_a_limit_of_connections_that_is_nearly_reached_is_a_warning() -> None:
    assert connection_health("the server", 92, 97).verdict is HealthStatus.OK
    found = connection_health("the server", 93, 97)
    assert found.verdict is HealthStatus.WARNING
    assert found.detail.startswith("the server uses 93 of 97: ")
