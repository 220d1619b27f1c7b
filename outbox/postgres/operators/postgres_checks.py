"""PostgreSQL: version, durability, clock, disk, migrations, heartbeats, partitions, halts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import psycopg

from outbox.clock import SystemClock
from outbox.errors import DatabaseUnavailable
from outbox.operators.health_check import (
    HealthCheck,
    HealthStatus,
    health_check,
)
from outbox.operators.server_requirements import judge_postgres
from outbox.operators.store_view import ShardState, shard_state
from outbox.postgres.maintenance.readiness import (
    NEEDED_TASKS,
    is_alive,
    newest_revision,
)
from outbox.postgres.operators.operator_view import OperatorView
from outbox.settings.catalogue import Settings
from outbox.settings.service_manager import compose_command, start_command

OLDEST_POSTGRES = 150_000
MOST_SKEW_SECONDS = 1.0
WAITING = (
    ("PARKED", "parked messages", "outbox message list --state PARKED"),
    ("HELD", "held messages", "outbox held list"),
)
"""What waits for a person: state, name of the check, the next command."""
UPKEEP = ("retire", "leaves")
"""Tasks that no message waits for, and without which the disk or the default leaves fill up."""
SWITCHED_OFF_SECONDS = 86_400
"""A task that has been silent for so long was switched off, or an earlier release had it."""
MOST_OPEN_SECONDS = 60.0
"""Our own transactions take milliseconds."""
READ_ONLY = "25006"
NO_ROOM = ("53", "58")
"""The classes of errors of a full or broken disk."""
OLD_AGE = 1_000_000_000
"""Five times the age at which autovacuum begins whatever is set for a table."""
LAST_AGE = 2_000_000_000
"""PostgreSQL takes no more transactions 3 million before 2^31."""


def postgres_checks(settings: Settings) -> Iterator[HealthCheck]:
    """Check the database of these settings."""
    url = settings.required_database_url()
    try:
        with OperatorView(url) as view:
            yield from server_health(view.server(), SystemClock().now().timestamp())
            yield write_health(view.write_refusal())
            yield vacuum_health(**view.rows("oldest_database")[0])
            yield collation_health(**view.rows("collation")[0])
            current, newest = view.revision() or "", newest_revision()
            detail = f"at {current or 'nothing'}, newest {newest}"
            is_current = current >= newest
            yield health_check("migrations", is_current, detail, command="outbox migrate up")
            if is_current:
                yield from heartbeat_health(view.rows("tasks"))
                yield halt_health([shard_state(row) for row in view.rows("shards")])
                yield paused_health(view.rows("paused"))
                yield leaf_health([row["table_name"] for row in view.rows("without_leaf")])
                yield watermark_health(next(iter(view.rows("watermark_holder")), None))
                yield from message_health(view.unfinished())
    except DatabaseUnavailable as error:
        detail = f"{_place(url)}: {error}; is it running, and is it what OUTBOX_DATABASE_URL means?"
        yield health_check("postgres", False, detail, command=start_command("postgres"))


def stored_topics(settings: Settings) -> list[str]:
    """Return the topics that ever had a message; none if the database does not show them."""
    try:
        with OperatorView(settings.required_database_url()) as view:
            return view.topics()
    except DatabaseUnavailable:
        return []


def server_health(server: Mapping[str, Any], now: float) -> Iterator[HealthCheck]:
    """Check the server's version, durability and clock; `now` is local epoch seconds."""
    version = int(server["version"])
    shown = f"{version // 10_000}.{version % 10_000}"
    yield health_check(
        "postgres version", version >= OLDEST_POSTGRES, f"{shown}, required: 15 or newer"
    )
    yield from judge_postgres(server)
    skew = abs(now - float(server["clock"]))
    close = skew <= MOST_SKEW_SECONDS
    yield health_check("clock skew", close, f"{skew:.3f} s", HealthStatus.WARNING)


def heartbeat_health(tasks: list[dict[str, Any]]) -> Iterator[HealthCheck]:
    """Check the age of each task's last heartbeat.

    Messages wait for some of them. The others may take long, or be switched off: a warning, but
    not for ever.
    """
    ages = dict.fromkeys(NEEDED_TASKS) | {task["task"]: task["seconds_ago"] for task in tasks}
    for name, age in ages.items():
        if age is None:
            detail = "has never run on this database: start `outbox checker`"
            yield health_check(f"task {name}", False, detail, command=start_command("checker"))
            continue
        if age > SWITCHED_OFF_SECONDS and name not in (*NEEDED_TASKS, *UPKEEP):
            continue
        alive = is_alive(age)
        more = "" if alive else ": is a checker with this task running, and what does its log say?"
        otherwise = HealthStatus.FAILED if name in NEEDED_TASKS else HealthStatus.WARNING
        detail = f"{age:.1f} s ago{more}"
        yield health_check(f"task {name}", alive, detail, otherwise, start_command("checker"))


def write_health(refusal: psycopg.Error | None) -> HealthCheck:
    """Check that PostgreSQL writes; ``refusal`` is its error."""
    if refusal is None:
        return health_check("postgres writes", True, "no write was refused")
    code, command = refusal.sqlstate or "", None
    text = str(refusal).strip().splitlines()[0]
    detail = f"{text}; prepares and ends get 503 meanwhile, nothing is lost"
    if code == READ_ONLY:
        detail += (
            ": this is a standby, or default_transaction_read_only is on for the role, the database"
            " or the server"
        )
    elif code.startswith(NO_ROOM):
        detail += ": make room on the disk of its data"
        command = compose_command("exec postgres df -h /var/lib/postgresql")
    return health_check("postgres writes", False, detail, command=command)


def vacuum_health(database: str, ids: str, age: int, vacuums: bool) -> HealthCheck:
    """Check that the server vacuums, and that no database nears the age that ends all writes."""
    if not vacuums:
        why = "autovacuum or track_counts is off: queues grow, and reads of them get slower"
        return health_check("transaction ids", False, why, HealthStatus.WARNING)
    detail = f"the oldest of database {database} is {age / 1e6:.0f} million {ids} old"
    if age < OLD_AGE:
        return health_check("transaction ids", True, detail)
    detail += (
        ", and at 2 144 million PostgreSQL takes no more writes: see that autovacuum runs, drop old"
        " replication slots, end old transactions, and run VACUUM (FREEZE) in database "
        f"{database}"
    )
    verdict = HealthStatus.WARNING if age < LAST_AGE else HealthStatus.FAILED
    return health_check("transaction ids", False, detail, verdict)


def halt_health(shards: Sequence[ShardState]) -> HealthCheck:
    """Check that no shard waits for an operator."""
    halted = [shard for shard in shards if shard.halt_reason is not None]
    if not halted:
        return health_check("halted shards", True, "none")
    detail = "; ".join(f"{each.shard}: {each.halt_reason}, {each.advice}" for each in halted)
    return health_check("halted shards", False, detail, command=halted[0].commands[0])


def paused_health(groups: Sequence[Mapping[str, Any]]) -> HealthCheck:
    """Check that every group is asked; the one that was paused first is the next to resume."""
    detail = "; ".join(
        f"{each['name']} since {each['since']} UTC by {each['paused_by']}: {each['pause_reason']}"
        for each in groups
    )
    command = f"outbox group resume {groups[0]['name']} --reason TEXT" if groups else None
    found = detail or "none"
    return health_check("paused groups", not groups, found, HealthStatus.WARNING, command)


def message_health(unfinished: Sequence[Mapping[str, Any]]) -> Iterator[HealthCheck]:
    """Show what waits for a person, and the backlog."""
    for state, check, command in WAITING:
        rows = [row for row in unfinished if row["state"] == state]
        named = ", ".join(
            f"{'≥ ' * row['capped']}{row['messages']} of {row['producer_group']} for {row['topic']}"
            for row in sorted(rows, key=lambda row: -row["messages"])[:5]
        )
        detail = f"{named}: {command}" if named else "none"
        yield health_check(check, not named, detail, HealthStatus.WARNING, command)
    backlog = sum(row["messages"] for row in unfinished if row["state"] == "COMMITTED")
    undecided = sum(row["messages"] for row in unfinished if row["state"] == "PREPARED")
    yield health_check(
        "messages", True, f"{undecided} undecided, {backlog} committed wait for Kafka"
    )


def leaf_health(tables: list[str]) -> HealthCheck:
    """Check that no table has rows outside every leaf."""
    detail = "every row has its leaf"
    if tables:
        detail = f"rows of {', '.join(tables)} have no leaf yet: see that a checker runs"
    return health_check("partitions", not tables, detail)


def collation_health(database: str, made_with: str | None, present: str | None) -> HealthCheck:
    """Check that an upgrade of the operating system has not changed the order of texts.

    An index on texts does not find all its rows then: a repeated prepare stores a second message.
    """
    same = made_with == present or made_with is None or present is None
    detail = f"version {present or 'none'}"
    if not same:
        detail = (
            f"indexes of texts were made with version {made_with}, the server has {present}:"
            " repeated prepares may store second messages. REINDEX SCHEMA outbox, and what else is"
            f" in the database; then ALTER DATABASE {database} REFRESH COLLATION VERSION"
        )
    return health_check("collation", same, detail)


def watermark_health(holder: Mapping[str, Any] | None) -> HealthCheck:
    """Check that no open transaction keeps messages waiting; ``holder`` is the oldest one."""
    if holder is None or holder["seconds"] < MOST_OPEN_SECONDS:
        return health_check("open transaction", True, "none keeps messages waiting")
    detail = (
        f"pid {holder['pid']} of role {holder['role']} ({holder['program'] or 'no name'}, database"
        f" {holder['database']}) has one for {holder['seconds']:.0f} s or"
        " more: newer messages are neither published nor checked before it ends;"
        f" see what it does (SELECT * FROM pg_stat_activity WHERE pid = {holder['pid']}),"
        " and end it with pg_terminate_backend"
    )
    return health_check("open transaction", False, detail)


def _place(database_url: str) -> str:
    """Return host, port and database of a URL: nothing of it that is a secret."""
    url = urlsplit(database_url)
    return url.netloc.rpartition("@")[2] + url.path
