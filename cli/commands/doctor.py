"""`outbox doctor`: checks everything that the guarantees depend on."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import typer

from cli.invocation.context import context_of
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.output import print_rows
from cli.invocation.settings import settings_or_dev
from cli.service.api_client import api_client
from cli.service.api_problem import ApiProblem
from outbox.clock import SystemClock
from outbox.errors import DatabaseUnavailable, KafkaUnavailable
from outbox.kafka.progress_topic import (
    RETENTION_MS,
    ProgressTopicFacts,
    progress_topic_facts,
    safety_of,
)
from outbox.relay.server_requirements import Judgement, judge_postgres
from outbox.settings.catalogue import Settings

OLDEST_POSTGRES = 150_000
MOST_SKEW_SECONDS = 1.0
BEATS_MISSED = 3
FOR_EVER = -1


class HealthStatus(StrEnum):
    """The result of one health check."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    """One health check and its result."""

    check: str
    verdict: HealthStatus
    detail: str


def doctor(context: typer.Context) -> None:
    """Check PostgreSQL, Kafka, the checker and the check endpoints; exits 1 on a failure."""
    settings = settings_or_dev()
    findings = [*_database(settings), *_kafka(settings), *_endpoints(context)]
    rows = [asdict(finding) for finding in findings]
    print_rows(context_of(context), rows, ("check", "verdict", "detail"))
    if any(finding.verdict is HealthStatus.FAILED for finding in findings):
        raise typer.Exit(ExitCode.ERROR)


def _database(settings: Settings) -> Iterator[HealthCheck]:
    from cli.stores.schema import schema_state
    from outbox.postgres.operators.operator_view import OperatorView

    url = settings.required_database_url()
    try:
        with OperatorView(url) as view:
            yield from server_findings(view.server(), SystemClock().now().timestamp())
            state = schema_state(url)
            detail = f"at {state.current or 'nothing'}, newest {state.newest}"
            yield _finding("migrations", state.is_current, detail)
            if state.is_current:
                most = BEATS_MISSED * settings.checker_heartbeat_seconds
                yield from heartbeat_findings(view.chores(), most)
                yield leaf_finding(view.without_leaf())
    except DatabaseUnavailable as error:
        yield _finding("postgres", False, str(error))


def server_findings(server: Mapping[str, Any], now: float) -> Iterator[HealthCheck]:
    """Check the server's version, durability and clock; `now` is local epoch seconds."""
    version = int(server["version"])
    shown = f"{version // 10_000}.{version % 10_000}"
    yield _finding(
        "postgres version", version >= OLDEST_POSTGRES, f"{shown}, required: 15 or newer"
    )
    yield from _judged(judge_postgres(server))
    skew = abs(now - float(server["clock"]))
    verdict = HealthStatus.OK if skew <= MOST_SKEW_SECONDS else HealthStatus.WARNING
    yield HealthCheck(check="clock skew", verdict=verdict, detail=f"{skew:.3f} s")


def heartbeat_findings(chores: list[dict[str, Any]], most_seconds: float) -> Iterator[HealthCheck]:
    """Check the age of each chore's last heartbeat."""
    from outbox.postgres.maintenance.readiness import NEEDED_CHORES

    seen = {chore["chore"] for chore in chores}
    for needed in NEEDED_CHORES:
        if needed not in seen:
            yield _finding(f"chore {needed}", False, "has never run on this database")
    for chore in chores:
        age = float(chore["seconds_ago"])
        yield _finding(f"chore {chore['chore']}", age <= most_seconds, f"{age:.1f} s ago")


def leaf_finding(tables: list[str]) -> HealthCheck:
    """Check that no table has rows outside every leaf."""
    detail = "every row has its leaf"
    if tables:
        detail = f"rows of {', '.join(tables)} have no leaf yet: see that a checker runs"
    return _finding("partitions", not tables, detail)


def _kafka(settings: Settings) -> Iterator[HealthCheck]:
    try:
        facts = progress_topic_facts(settings.required_bootstrap_servers(), settings.kafka_config)
    except KafkaUnavailable as error:
        yield _finding("kafka", False, str(error))
        return
    yield _finding("kafka", True, f"{facts.brokers} broker(s), {facts.topics} topics")
    yield from progress_topic_findings(facts)


def progress_topic_findings(facts: ProgressTopicFacts) -> Iterator[HealthCheck]:
    """Check the topic `outbox.progress` and the broker settings that its transactions need."""
    detail = f"{facts.partitions} partitions, required: 16"
    yield _finding("outbox.progress", facts.partitions == 16, detail)
    yield from _judged(safety_of(facts))
    kept = int(facts.settings.get("retention.ms", "0"))
    yield _newest(facts)
    long_enough = kept == FOR_EVER or kept >= RETENTION_MS
    yield _finding("retention.ms", long_enough, f"{kept}, required: {RETENTION_MS} or more")
    unclean = facts.settings.get("unclean.leader.election.enable", "-")
    yield _finding("unclean.leader.election.enable", unclean == "false", unclean)
    in_sync = int(facts.settings.get("min.insync.replicas", "1"))
    verdict = HealthStatus.OK if in_sync >= 2 else HealthStatus.WARNING
    detail = f"{in_sync}; 2 with three brokers survives the loss of one"
    yield HealthCheck(check="min.insync.replicas", verdict=verdict, detail=detail)


def _newest(facts: ProgressTopicFacts) -> HealthCheck:
    """Warn about releases that can complete a commit without writing to every partition (ADR 0017).

    Kafka reports its exact version to no client, so a later fixed release gets the warning too.
    """
    if not facts.newer_than_4_2 or facts.brokers == 1:
        return HealthCheck(
            check="kafka release", verdict=HealthStatus.OK, detail="not one to avoid"
        )
    detail = "4.3 or newer: 4.3.0 and 4.3.1 can leave a transaction open (KAFKA-20734); 4.2 cannot"
    return HealthCheck(check="kafka release", verdict=HealthStatus.WARNING, detail=detail)


def _endpoints(context: typer.Context) -> Iterator[HealthCheck]:
    """Let the API test each group's endpoint; without an API that is one warning."""
    try:
        with api_client(context) as api:
            groups = api.get("/v1/producer-groups")["data"]
            yield HealthCheck(
                check="api", verdict=HealthStatus.OK, detail=f"{len(groups)} producer groups"
            )
            for group in groups:
                yield _endpoint(api.post, str(group["producer_group"]))
    except (ApiProblem, CommandFailed) as error:
        yield HealthCheck(check="api", verdict=HealthStatus.WARNING, detail=str(error))


def _endpoint(post: Callable[[str], Any], group: str) -> HealthCheck:
    try:
        verdict = post(f"/v1/producer-groups/{group}/test")
    except (ApiProblem, CommandFailed) as error:
        return _finding(f"endpoint of {group}", False, str(error))
    return _finding(f"endpoint of {group}", bool(verdict["reachable"]), str(verdict["outcome"]))


def _judged(judgements: Iterable[Judgement]) -> Iterator[HealthCheck]:
    for judged in judgements:
        yield _finding(judged.setting, judged.safe, judged.detail)


def _finding(check: str, good: bool, detail: str) -> HealthCheck:
    return HealthCheck(
        check=check, verdict=HealthStatus.OK if good else HealthStatus.FAILED, detail=detail
    )
