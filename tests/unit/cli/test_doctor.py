"""What the doctor calls a failure."""

from typing import Any

from cli.doctor import Verdict, heartbeat_findings, server_findings

GOOD: dict[str, Any] = {
    "version": 180_004,
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "prepared_transactions": 0,
    "clock": 1000.0,
}


def verdicts(server: dict[str, Any], now: float = 1000.0) -> dict[str, Verdict]:
    return {finding.check: finding.verdict for finding in server_findings(server, now)}


def test_a_good_server_has_no_finding() -> None:
    assert set(verdicts(GOOD).values()) == {Verdict.OK}


def test_a_server_older_than_15_fails() -> None:
    assert verdicts({**GOOD, "version": 140_011})["postgres version"] is Verdict.FAILED


def test_a_server_that_may_lose_commits_fails() -> None:
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        assert verdicts({**GOOD, name: "off"})[name] is Verdict.FAILED


def test_prepared_transactions_fail() -> None:
    found = verdicts({**GOOD, "prepared_transactions": 10})
    assert found["max_prepared_transactions"] is Verdict.FAILED


def test_a_skewed_clock_is_a_warning() -> None:
    assert verdicts(GOOD, now=1002.0)["clock skew"] is Verdict.WARNING


def test_a_silent_chore_fails_and_so_does_a_checker_never_seen() -> None:
    chores = [{"chore": "relay", "seconds_ago": 1.0}, {"chore": "sweep", "seconds_ago": 60.0}]
    found = {each.check: each.verdict for each in heartbeat_findings(chores, 15)}
    assert found == {"chore relay": Verdict.OK, "chore sweep": Verdict.FAILED}
    assert [each.verdict for each in heartbeat_findings([], 15)] == [Verdict.FAILED]
