"""The doctor's failures and warnings about PostgreSQL."""

from typing import Any

from psycopg.errors import DiskFull

from outbox.operators.health_check import HealthStatus, health_check
from outbox.operators.store_view import shard_state
from outbox.postgres.operators.postgres_checks import (
    collation_health,
    halt_health,
    heartbeat_health,
    leaf_health,
    message_health,
    server_health,
    vacuum_health,
    watermark_health,
    write_health,
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
    return {each.check: each.verdict for each in server_health(server, now)}


def test_a_good_server_passes_every_check() -> None:
    assert set(verdicts(GOOD).values()) == {HealthStatus.OK}


def test_a_server_that_may_lose_commits_fails() -> None:
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        assert verdicts({**GOOD, name: "off"})[name] is HealthStatus.FAILED


def test_a_standby_that_does_not_flush_the_commit_fails() -> None:
    found = verdicts({**GOOD, "synchronous_commit": "remote_write"})
    assert found["synchronous_commit"] is HealthStatus.FAILED
    assert verdicts({**GOOD, "synchronous_commit": "remote_apply"}) == verdicts(GOOD)


def test_a_skewed_clock_is_a_warning() -> None:
    assert verdicts(GOOD, now=1002.0)["clock skew"] is HealthStatus.WARNING


def test_an_old_heartbeat_fails_and_so_does_a_missing_checker() -> None:
    tasks = [{"task": "relay", "seconds_ago": 1.0}, {"task": "sweep", "seconds_ago": 60.0}]
    found = {each.check: each.verdict for each in heartbeat_health(tasks)}
    assert found == {
        "task relay": HealthStatus.OK,
        "task sweep": HealthStatus.FAILED,
        "task check": HealthStatus.FAILED,
    }
    assert [each.verdict for each in heartbeat_health([])] == [HealthStatus.FAILED] * 3


def test_a_task_that_no_message_waits_for_is_a_warning_when_it_is_silent() -> None:
    tasks = [{"task": name, "seconds_ago": 1.0} for name in ("relay", "check", "sweep")]
    silent = {"task": "parked", "seconds_ago": 9000.0}
    (found,) = [
        each for each in heartbeat_health([*tasks, silent]) if each.verdict != HealthStatus.OK
    ]
    assert (found.check, found.verdict) == ("task parked", HealthStatus.WARNING)


def unfinished(state: str, messages: int, *, capped: bool = False) -> dict[str, Any]:
    row = {"state": state, "producer_group": "billing", "topic": "invoices"}
    return {**row, "messages": messages, "capped": capped}


def test_what_waits_for_a_person_is_counted_with_the_next_command() -> None:
    rows = [unfinished("PARKED", 3), unfinished("HELD", 4, capped=True), unfinished("PREPARED", 6)]
    found = {each.check: (each.verdict, each.detail) for each in message_health(rows)}
    parked = "3 of billing for invoices: outbox message list --state PARKED"
    assert found["parked messages"] == (HealthStatus.WARNING, parked)
    held = "≥ 4 of billing for invoices: outbox held list"
    assert found["held messages"] == (HealthStatus.WARNING, held)
    assert found["messages"][0] is HealthStatus.OK
    assert {each.verdict for each in message_health([])} == {HealthStatus.OK}


def test_rows_without_a_leaf_fail_and_are_named() -> None:
    assert leaf_health([]).verdict is HealthStatus.OK
    found = leaf_health(["commit_log", "half_message"])
    assert found.verdict is HealthStatus.FAILED
    assert "commit_log, half_message" in found.detail


def test_a_server_that_cannot_write_fails_and_its_disk_is_named() -> None:
    assert write_health(None).verdict is HealthStatus.OK
    found = write_health(DiskFull("No space left on device"))
    assert found.verdict is HealthStatus.FAILED
    assert "No space left on device" in found.detail


def test_a_transaction_that_keeps_messages_waiting_for_a_minute_fails_and_is_named() -> None:
    assert watermark_health(None).verdict is HealthStatus.OK
    holder = {"pid": 4711, "role": "bi", "program": "psql", "database": "shop", "seconds": 59.0}
    assert watermark_health(holder).verdict is HealthStatus.OK
    found = watermark_health({**holder, "seconds": 61.0})
    assert found.verdict is HealthStatus.FAILED
    assert "pid 4711 of role bi (psql, database shop)" in found.detail


def test_a_halted_shard_fails_with_its_advice_and_the_command_that_resolves_it() -> None:
    row = {"shard": 2, "owner": "a", "position": 7, "backlog": 0, "updated_at": None}
    calm = shard_state({**row, "halt_reason": None})
    assert halt_health([calm]) == health_check("halted shards", True, "none")
    halted = shard_state({**row, "shard": 5, "halt_reason": "chain_broken"})
    found = halt_health([calm, halted])
    assert found.verdict is HealthStatus.FAILED
    assert found.detail == f"5: chain_broken, {halted.advice}"
    assert found.command == "outbox shard resolve 5 --scan --reason TEXT"


def test_another_order_of_texts_than_that_of_the_indexes_fails() -> None:
    for same in (("2.36", "2.36"), (None, None), (None, "2.39")):
        assert collation_health("box", *same).verdict is HealthStatus.OK
    found = collation_health("box", "2.36", "2.39")
    assert found.verdict is HealthStatus.FAILED
    assert "ALTER DATABASE box REFRESH COLLATION VERSION" in found.detail


def test_a_database_that_nears_the_end_of_its_ids_is_named() -> None:
    assert vacuum_health("box", "transactions", 400_000_000, True).verdict is HealthStatus.OK
    near = vacuum_health("box", "multixacts", 1_500_000_000, True)
    assert near.verdict is HealthStatus.WARNING
    assert "VACUUM (FREEZE) in database box" in near.detail
    assert vacuum_health("box", "transactions", 2_100_000_000, True).verdict is HealthStatus.FAILED
    assert vacuum_health("box", "transactions", 0, vacuums=False).verdict is HealthStatus.WARNING
