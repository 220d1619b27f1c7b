"""The doctor's failures and warnings about PostgreSQL."""

from dataclasses import replace
from typing import Any

from outbox.operators.health_check import HealthStatus, health_check
from outbox.operators.installation import ShardState
from outbox.postgres.operators.operator_view import WriteRefusal
from outbox.postgres.operators.postgres_checks import (
    age_health,
    collation_health,
    connection_health,
    halt_health,
    heartbeat_health,
    leaf_health,
    leaf_lock_health,
    message_health,
    policy_health,
    postgres_checks,
    reader_health,
    server_health,
    setting_health,
    watermark_health,
    write_health,
)
from outbox.settings.environment import load_settings

GOOD: dict[str, Any] = {
    "version": 180_004,
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "autovacuum": "on",
    "track_counts": "on",
    "track_activities": "on",
    "prepared_transactions": 0,
    "clock": 1000.0,
    "backend_pid": 7,
    "announced_pid": 7,
}

SETTINGS = {"autovacuum": "on", "track_counts": "on", "track_activities": "on"}


def verdicts(server: dict[str, Any], now: float = 1000.0) -> dict[str, HealthStatus]:
    return {each.check: each.verdict for each in server_health(server, now)}


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
    tasks = [{"chore": "relay", "seconds_ago": 1.0}, {"chore": "sweep", "seconds_ago": 60.0}]
    found = {each.check: each.verdict for each in heartbeat_health(tasks, 15)}
    assert found == {
        "task relay": HealthStatus.OK,
        "task sweep": HealthStatus.FAILED,
        "task check": HealthStatus.FAILED,
    }
    assert [each.verdict for each in heartbeat_health([], 15)] == [HealthStatus.FAILED] * 3


def test_a_heartbeat_from_before_the_clock_was_set_back_fails() -> None:
    tasks = [{"chore": name, "seconds_ago": -86_400.0} for name in ("relay", "check", "sweep")]
    assert {each.verdict for each in heartbeat_health(tasks, 15)} == {HealthStatus.FAILED}


def test_a_task_that_no_message_waits_for_is_a_warning_when_it_is_silent() -> None:
    tasks = [{"chore": name, "seconds_ago": 1.0} for name in ("relay", "check", "sweep")]
    silent = {"chore": "parked", "seconds_ago": 9000.0}
    (found,) = [
        each for each in heartbeat_health([*tasks, silent], 15) if each.verdict != HealthStatus.OK
    ]
    assert (found.check, found.verdict) == ("task parked", HealthStatus.WARNING)


def test_a_task_that_was_switched_off_long_ago_is_no_warning_but_upkeep_is() -> None:
    tasks = [{"chore": name, "seconds_ago": 1.0} for name in ("relay", "check", "sweep")]
    silent = [
        {"chore": name, "seconds_ago": 7 * 86_400.0} for name in ("parked", "retire", "leaves")
    ]
    found = {each.check: each.verdict for each in heartbeat_health([*tasks, *silent], 15)}
    assert "task parked" not in found
    assert found["task retire"] is found["task leaves"] is HealthStatus.WARNING


def unfinished(state: str, messages: int, group: str = "billing") -> dict[str, Any]:
    return {"state": state, "producer_group": group, "topic": "invoices", "messages": messages}


def test_what_waits_for_a_person_is_counted_with_the_next_command() -> None:
    rows = [
        unfinished("PARKED", 2),
        unfinished("PARKED", 3, "shop"),
        unfinished("HELD", 4),
        unfinished("COMMITTED", 5),
        unfinished("PREPARED", 6),
    ]
    found = {each.check: (each.verdict, each.detail) for each in message_health(rows)}
    parked = "3 of shop, 2 of billing: outbox message list --state PARKED"
    assert found == {
        "parked messages": (HealthStatus.WARNING, parked),
        "held messages": (HealthStatus.WARNING, "4 of invoices: outbox held list"),
        "messages": (HealthStatus.OK, "6 undecided, 5 committed wait for Kafka"),
    }
    assert {each.verdict for each in message_health([])} == {HealthStatus.OK}


def test_a_database_that_is_away_is_named_without_its_password() -> None:
    settings = load_settings({"OUTBOX_DATABASE_URL": "postgresql://u:canary@127.0.0.1:1/none"})
    (found,) = postgres_checks(settings)
    assert found.verdict is HealthStatus.FAILED
    assert found.detail.startswith("127.0.0.1:1/none: ")
    assert found.detail.endswith("; is it running, and is it what OUTBOX_DATABASE_URL means?")
    assert "canary" not in found.detail


def test_rows_without_a_leaf_fail_and_are_named() -> None:
    assert leaf_health([]).verdict is HealthStatus.OK
    found = leaf_health(["commit_log", "half_message"])
    assert found.verdict is HealthStatus.FAILED
    assert "commit_log, half_message" in found.detail


def test_leaves_that_need_more_locks_than_a_session_has_room_for_are_a_warning() -> None:
    assert leaf_lock_health(leaves=32, room=64).verdict is HealthStatus.OK
    found = leaf_lock_health(leaves=33, room=64)
    assert found.verdict is HealthStatus.WARNING
    assert found.detail.startswith("max_locks_per_transaction 64, 33 leaves need 66: ")
    assert "set 128 and restart PostgreSQL" in found.detail


def test_a_server_that_cannot_write_fails_and_the_command_names_its_disk() -> None:
    assert write_health(None, []).verdict is HealthStatus.OK
    found = write_health(WriteRefusal("No space left on device", "53100"), ["audit"])
    assert found.verdict is HealthStatus.FAILED
    assert found.detail.startswith("No space left on device; ")
    assert (found.command or "").startswith("df -h ")
    assert "audit" not in found.detail


def test_a_silent_task_of_the_leaves_names_what_may_refuse_its_work() -> None:
    tasks = [{"chore": name, "seconds_ago": 1.0} for name in ("relay", "check", "sweep")]
    silent = {"chore": "leaves", "seconds_ago": 900.0}
    found = {each.check: each for each in heartbeat_health([*tasks, silent], 15, ["no_ddl"])}
    assert "event trigger no_ddl" in found["task leaves"].detail
    alive = {each.check: each for each in heartbeat_health(tasks, 15, ["no_ddl"])}
    assert "no_ddl" not in "".join(each.detail for each in alive.values())


def test_a_transaction_that_keeps_messages_waiting_for_a_minute_fails_and_is_named() -> None:
    assert watermark_health(None).verdict is HealthStatus.OK
    holder = {"pid": 4711, "role": "bi", "program": "psql", "database": "shop", "seconds": 59.0}
    assert watermark_health(holder).verdict is HealthStatus.OK
    found = watermark_health({**holder, "seconds": 61.0})
    assert found.verdict is HealthStatus.FAILED
    named = "pid 4711 of role bi (psql, database shop) has one for 61 s or more: "
    assert found.detail.startswith(named)
    assert "pg_stat_activity WHERE pid = 4711" in (found.command or "")


def test_a_halted_shard_fails_with_its_advice_and_the_command_that_resolves_it() -> None:
    calm = ShardState(shard=2, owner="a", position=7, backlog=0, halt_reason=None, updated_at=None)
    assert halt_health([calm]) == health_check("halted shards", True, "none")
    halted = replace(calm, shard=5, halt_reason="chain_broken")
    found = halt_health([calm, halted])
    assert found.verdict is HealthStatus.FAILED
    assert found.detail == f"5: chain_broken, {halted.advice}"
    assert found.command == "outbox shard resolve 5 --scan --reason TEXT"


def test_tables_with_policies_fail_with_the_statements_that_switch_them_off() -> None:
    assert policy_health([]).verdict is HealthStatus.OK
    found = policy_health(["commit_log"])
    assert found.verdict is HealthStatus.FAILED
    assert found.detail.endswith("ALTER TABLE outbox.commit_log DISABLE ROW LEVEL SECURITY;")


def test_another_order_of_texts_than_that_of_the_indexes_fails() -> None:
    for same in (("2.36", "2.36"), (None, None), (None, "2.39")):
        assert collation_health("box", *same).verdict is HealthStatus.OK
    found = collation_health("box", "2.36", "2.39")
    assert found.verdict is HealthStatus.FAILED
    assert found.detail.startswith("indexes of texts were made with version 2.36, the server has 2")
    assert found.detail.endswith("then ALTER DATABASE box REFRESH COLLATION VERSION")


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
