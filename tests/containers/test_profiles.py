"""The profiles add audits, metrics, TLS and a demo that work."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from tests.containers.fixtures_page import commands, typed
from tests.containers.fixtures_stack import KILLED, Stack
from tests.containers.fixtures_watch import Watch
from tests.fixtures_paths import PROJECT
from tests.fixtures_waiting import wait_for

RULES, CASES = "deploy/alerts", "tests/unit/deploy/monitoring/alerts"
BY_THE_WALK = {
    *("OutboxApiSilent", "OutboxCheckerSilent", "OutboxRequestsFail"),
    "OutboxPublishSlow",  # each of its few messages waits for a part that comes back
}
"""The alerts that test_stack.py may cause: it kills and stops each part for a while."""
STAYING = ("reconcile", "prometheus", "tls", "account", "member")


@pytest.fixture(scope="module")
def certified(stack: Stack, images_of_profiles: None) -> Stack:
    """Return the stack with its API behind a certificate for tests."""
    (command,) = commands("TLS")
    typed(stack, command)
    return stack


def test_the_demo_takes_money_and_grants_points(stack: Stack) -> None:
    typed(stack, "make up", COMPOSE_PROFILES="demo")
    purchase = {"purchase_id": "p1", "member": "alice", "amount": 40}
    url = f"http://127.0.0.1:{stack.ports['ACCOUNT_PORT']}/purchases"
    answer = httpx2.post(url, json=purchase, trust_env=False, timeout=60)
    assert answer.status_code == 200, answer.text
    assert wait_for(lambda: points_of(stack, "alice"), 120, every=1) == "40"


def test_a_producer_in_another_container_can_be_checked(stack: Stack) -> None:
    typed(stack, "make up", COMPOSE_PROFILES="demo")
    tried = json.loads(stack.outbox("group", "test", "account-service", "-o", "json"))
    assert tried["reachable"]
    assert tried["signature_accepted"]


def points_of(stack: Stack, member: str) -> str:
    query = f"SELECT points FROM member_points WHERE member = '{member}'"
    words = ("exec", "-T", "postgres", "psql", "--username=outbox", "--dbname=member")
    return stack.compose(*words, "--tuples-only", "--no-align", f"--command={query}").strip()


def test_an_audit_runs_by_itself_and_the_api_serves_its_report(stack: Stack) -> None:
    typed(stack, "make up", COMPOSE_PROFILES="spark")
    with stack.http() as http:
        run = wait_for(lambda: newest_run(http), 300, every=2)
        assert run["verdict"] == "clean", run
        report = http.get(f"/v1/reconciliations/{run['run_id']}/report.html")
    assert report.status_code == 200
    assert "<html" in report.text
    assert stack.is_healthy("reconcile")


def newest_run(http: httpx2.Client) -> dict[str, Any]:
    found: list[dict[str, Any]] = http.get("/v1/reconciliations").json()["data"]
    return found[0] if found else {}


def test_an_audit_by_hand_prints_its_verdict(stack: Stack) -> None:
    (command,) = commands("Profiles")
    assert json.loads(typed(stack, command))["verdict"] == "clean"


def test_the_api_is_served_with_tls(certified: Stack) -> None:
    tls = certified.containers()["tls"]
    assert tls["Config"]["User"] == "101:101"
    assert "PRIVATE KEY" not in json.dumps(tls)


@pytest.mark.usefixtures("images_of_profiles")
def test_prometheus_reads_both_programs_and_every_alert(stack: Stack) -> None:
    stack.compose("up", "--detach", "--wait", "prometheus")
    base = f"http://127.0.0.1:{stack.ports['PROMETHEUS_PORT']}/api/v1"
    with httpx2.Client(trust_env=False, timeout=60) as http:
        wait_for(
            lambda: set(health(http, base)) == {"up"} and len(health(http, base)) == 2, every=1
        )
        groups = http.get(f"{base}/rules").json()["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert "OutboxRelayHalted" in {rule["name"] for rule in rules}
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}


@pytest.mark.usefixtures("images_of_profiles")
def test_promtool_sees_each_alert_fire_once_and_be_silent_once(stack: Stack) -> None:
    """As tests/unit/deploy/monitoring does where promtool is installed."""
    mounts = [f"--volume={PROJECT / each}:/project/{each}:ro" for each in (RULES, CASES)]
    cases = [f"/project/{CASES}/{each.name}" for each in (PROJECT / CASES).glob("*.yml")]
    run = ("run", "--rm", "--no-deps", "-T", "--entrypoint=promtool", "--env=TMPDIR=/prometheus")
    said = stack.compose(*run, *mounts, "prometheus", "test", "rules", *cases)
    assert said.count("SUCCESS") == len(cases)


def test_prometheus_saw_no_other_alert_in_all_crashes_and_stops(stack: Stack, watch: Watch) -> None:
    """It watched all tests before."""
    stack.compose("up", "--detach", "--wait", "prometheus")
    assert watch.fired() <= BY_THE_WALK


def test_every_part_of_a_profile_comes_back_after_a_crash_and_stops_within_its_grace(
    certified: Stack,
) -> None:
    certified.compose("up", "--detach", "--wait", *STAYING)
    for service in STAYING:
        certified.crash(service)
    wait_for(lambda: all(map(certified.is_healthy, STAYING)), 300, every=1)
    certified.compose("stop", *STAYING)
    ended = {each: certified.containers()[each]["State"]["ExitCode"] for each in STAYING}
    assert KILLED not in ended.values(), ended


def health(http: httpx2.Client, base: str) -> list[str]:
    """Return how each target of Prometheus is."""
    targets = http.get(f"{base}/targets").json()["data"]["activeTargets"]
    return [each["health"] for each in targets]
