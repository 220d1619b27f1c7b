"""PostgreSQL: version, durability, clock, migrations, heartbeats, partitions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cli.commands.doctor.health_check import HealthCheck, HealthStatus, finding, judged
from outbox.clock import SystemClock
from outbox.errors import DatabaseUnavailable
from outbox.relay.server_requirements import judge_postgres
from outbox.settings.catalogue import Settings

OLDEST_POSTGRES = 150_000
MOST_SKEW_SECONDS = 1.0
BEATS_MISSED = 3


def postgres_checks(settings: Settings) -> Iterator[HealthCheck]:
    """Check the database of these settings."""
    from cli.stores.schema import schema_state
    from outbox.postgres.operators.operator_view import OperatorView

    url = settings.required_database_url()
    try:
        with OperatorView(url) as view:
            yield from server_findings(view.server(), SystemClock().now().timestamp())
            state = schema_state(url)
            detail = f"at {state.current or 'nothing'}, newest {state.newest}"
            yield finding("migrations", state.is_current, detail)
            if state.is_current:
                most = BEATS_MISSED * settings.checker_heartbeat_seconds
                yield from heartbeat_findings(view.chores(), most)
                yield leaf_finding(view.without_leaf())
                yield lock_finding(view.strangers())
    except DatabaseUnavailable as error:
        yield finding("postgres", False, str(error))


def stored_topics(settings: Settings) -> list[str]:
    """Return the topics that ever had a message; none if the database does not show them."""
    from outbox.postgres.operators.operator_view import OperatorView

    try:
        with OperatorView(settings.required_database_url()) as view:
            return view.topics()
    except DatabaseUnavailable:
        return []


def server_findings(server: Mapping[str, Any], now: float) -> Iterator[HealthCheck]:
    """Check the server's version, durability and clock; `now` is local epoch seconds."""
    version = int(server["version"])
    shown = f"{version // 10_000}.{version % 10_000}"
    yield finding("postgres version", version >= OLDEST_POSTGRES, f"{shown}, required: 15 or newer")
    yield from judged(judge_postgres(server))
    skew = abs(now - float(server["clock"]))
    close = skew <= MOST_SKEW_SECONDS
    yield finding("clock skew", close, f"{skew:.3f} s", HealthStatus.WARNING)


def heartbeat_findings(chores: list[dict[str, Any]], most_seconds: float) -> Iterator[HealthCheck]:
    """Check the age of each chore's last heartbeat."""
    from outbox.postgres.maintenance.readiness import NEEDED_CHORES

    seen = {chore["chore"] for chore in chores}
    for needed in NEEDED_CHORES:
        if needed not in seen:
            yield finding(f"chore {needed}", False, "has never run on this database")
    for chore in chores:
        age = float(chore["seconds_ago"])
        yield finding(f"chore {chore['chore']}", age <= most_seconds, f"{age:.1f} s ago")


def leaf_finding(tables: list[str]) -> HealthCheck:
    """Check that no table has rows outside every leaf."""
    detail = "every row has its leaf"
    if tables:
        detail = f"rows of {', '.join(tables)} have no leaf yet: see that a checker runs"
    return finding("partitions", not tables, detail)


def lock_finding(strangers: Sequence[Mapping[str, Any]]) -> HealthCheck:
    """Check that nobody but our programs has one of our advisory locks; it delays their work."""
    held = [
        f"{each['kind']} {each['number'] or ''}".strip()
        + f" by role {each['role']}, pid {each['pid']}"
        for each in strangers
    ]
    detail = "held by our programs alone"
    if held:
        detail = f"{'; '.join(held)}: end these sessions with pg_terminate_backend"
    return finding("advisory locks", not held, detail, HealthStatus.WARNING)
