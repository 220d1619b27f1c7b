"""The doctor's failures and warnings about PostgreSQL."""

from typing import Any

from cli.commands.doctor.health_check import HealthStatus
from cli.commands.doctor.postgres_checks import (
    heartbeat_findings,
    leaf_finding,
    server_findings,
)

GOOD: dict[str, Any] = {
    "version": 180_004,
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "prepared_transactions": 0,
    "clock": 1000.0,
    "backend_pid": 7,
    "announced_pid": 7,
}


def verdicts(server: dict[str, Any], now: float = 1000.0) -> dict[str, HealthStatus]:
    return {finding.check: finding.verdict for finding in server_findings(server, now)}


def test_a_good_server_passes_every_check() -> None:
    assert set(verdicts(GOOD).values()) == {HealthStatus.OK}


def test_a_server_older_than_15_fails() -> None:
    assert verdicts({**GOOD, "version": 140_011})["postgres version"] is HealthStatus.FAILED


def test_a_server_that_may_lose_commits_fails() -> None:
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        assert verdicts({**GOOD, name: "off"})[name] is HealthStatus.FAILED


def test_prepared_transactions_fail() -> None:
    found = verdicts({**GOOD, "prepared_transactions": 10})
    assert found["max_prepared_transactions"] is HealthStatus.FAILED


def test_a_connection_pooler_fails() -> None:
    assert verdicts({**GOOD, "announced_pid": 8})["connection"] is HealthStatus.FAILED


def test_a_standby_that_does_not_flush_the_commit_fails() -> None:
    found = verdicts({**GOOD, "synchronous_commit": "remote_write"})
    assert found["synchronous_commit"] is HealthStatus.FAILED
    assert verdicts({**GOOD, "synchronous_commit": "remote_apply"}) == verdicts(GOOD)


def test_a_skewed_clock_is_a_warning() -> None:
    assert verdicts(GOOD, now=1002.0)["clock skew"] is HealthStatus.WARNING


def test_an_old_heartbeat_fails_and_so_does_a_missing_checker() -> None:
    chores = [{"chore": "relay", "seconds_ago": 1.0}, {"chore": "sweep", "seconds_ago": 60.0}]
    found = {each.check: each.verdict for each in heartbeat_findings(chores, 15)}
    assert found == {
        "chore relay": HealthStatus.OK,
        "chore sweep": HealthStatus.FAILED,
        "chore check": HealthStatus.FAILED,
    }
    assert [each.verdict for each in heartbeat_findings([], 15)] == [HealthStatus.FAILED] * 3


def test_rows_without_a_leaf_fail_and_are_named() -> None:
    assert leaf_finding([]).verdict is HealthStatus.OK
    found = leaf_finding(["commit_log", "half_message"])
    assert found.verdict is HealthStatus.FAILED
    assert "commit_log, half_message" in found.detail
