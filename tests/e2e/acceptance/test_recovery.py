"""Acceptance: killed processes, full restarts and full load give the planned results."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from chaos.servers.probes import is_alive
from devservers.ports import free_ports
from tests.e2e.fixtures_check_endpoint import check_endpoint
from tests.e2e.fixtures_service import Service, outbox_dev
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka]

AN_HOUR_LATER = (
    "UPDATE outbox.half_message SET prepared_at = prepared_at - interval '1 hour'"
    " WHERE half_id = (SELECT max(half_id) FROM outbox.half_message) RETURNING half_id"
)
GAUGES = {"PREPARED", "COMMITTED", "PARKED"}


def gauges(service: Service, group: str) -> Counter[str]:
    """Return the state gauges of one producer group, without zeros."""
    found: Counter[str] = Counter()
    for line in service.http.get("/metrics").text.splitlines():
        if line.startswith("outbox_half_messages{") and f'producer_group="{group}"' in line:
            state = line.split('state="')[1].split('"')[0]
            found[state] = int(float(line.rsplit(" ", 1)[1]))
    return +found


def states(service: Service, group: str) -> Counter[str]:
    """Return the states of a group's messages as the list shows them."""
    params = {"producer_group": group, "limit": "500"}
    page = service.http.get("/v1/half-messages", params=params).json()
    return Counter(message["state"] for message in page["data"])


def test_a15_after_a_restart_of_everything_gauges_equal_the_tables(tmp_path: Path) -> None:
    with outbox_dev(tmp_path / "data") as service, check_endpoint(lambda _: "UNKNOWN") as endpoint:
        topic = service.new_name("topic")
        parking = service.group(endpoint.url, check_max=1)
        waiting = service.group(endpoint.url, transaction_timeout_seconds=600)
        parked = [service.prepare(parking, topic) for _ in range(3)]
        left = [service.prepare(waiting, topic) for _ in range(9)]
        for message_id in left[:4]:
            service.end(message_id, "COMMIT", wait=20)
        for message_id in left[4:6]:
            service.end(message_id, "ROLLBACK")
        for message_id in parked:
            service.wait_state(message_id, "PARKED")
    with outbox_dev(tmp_path / "data") as service:
        assert states(service, waiting) == Counter(PUBLISHED=4, ROLLED_BACK=2, PREPARED=3)
        for group in (parking, waiting):
            counts = Counter({s: n for s, n in states(service, group).items() if s in GAUGES})
            wait_for(lambda g=group, c=counts: gauges(service, g) == c)  # type: ignore[misc]


@contextmanager
def second(service: Service, program: str, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run one more API or checker on the service's stores, with changed settings."""
    pid = service.facts()["pids"][program]
    pairs = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    environment = dict(pair.decode().split("=", 1) for pair in pairs if b"=" in pair)
    environment |= {f"OUTBOX_{name.upper()}": text for name, text in settings.items()}
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / f"outbox-{program}")], env=environment
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def test_a20_killed_processes_are_replaced_and_return_without_extra_records(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        service = stack.enter_context(outbox_dev(tmp_path / "data"))
        endpoint = stack.enter_context(check_endpoint(lambda _: "COMMIT"))
        with second(service, "checker", checker_metrics_bind="127.0.0.1:0"):
            topic = service.new_name("topic")
            group = service.group(endpoint.url)
            ids = [service.prepare(group, topic, key=str(n)) for n in range(16)]
            pids = service.facts()["pids"]
            for name in ("api", "checker"):
                os.kill(pids[name], signal.SIGKILL)
            wait_for(lambda: service.facts()["pids"]["checker"] != pids["checker"])
            wait_for(lambda: service.facts()["pids"]["api"] != pids["api"])
            wait_for(service.answers)
            for message_id in ids:
                service.wait_state(message_id, "PUBLISHED")
            assert Counter(r.message_id for r in service.records(topic)) == Counter(ids)


def test_a39_a_message_prepared_an_hour_ago_by_a_dead_process_is_ended_through_another(
    service: Service,
) -> None:
    (port,) = free_ports(1)
    with check_endpoint(lambda _: "UNKNOWN") as endpoint:
        topic, group = service.new_name("topic"), service.group(endpoint.url, check_max=15)
        with second(service, "api", http_bind=f"127.0.0.1:{port}") as first:
            wait_for(lambda: is_alive(port), seconds=60)
            body = {"producer_group": group, "topic": topic, "value": "points"}
            url = f"http://127.0.0.1:{port}/v1/half-messages"
            message_id = httpx2.post(url, json=body, timeout=60).json()["message_id"]
            first.kill()
            first.wait(timeout=60)
        service.rows(AN_HOUR_LATER)
        answer = service.end(message_id, "COMMIT", wait=20)
    assert (answer.status_code, answer.json()["state"]) == (200, "PUBLISHED")
    assert [record.message_id for record in service.records(topic)] == [message_id]


def test_a21_under_full_load_every_outcome_is_the_planned_one(service: Service) -> None:
    """Each value plans its end and its verdicts; no message is checked twice or when decided."""
    plan = random.Random(21)
    asked: Counter[tuple[str, int]] = Counter()
    unexpected: list[str] = []
    decided: set[str] = set()

    def verdict(question: dict[str, object]) -> str:
        verdicts = json.loads(str(question["value"]))["verdicts"]
        message_id, attempt = str(question["message_id"]), int(str(question["attempt"]))
        asked[message_id, attempt] += 1
        if message_id in decided:
            unexpected.append(message_id)
        answer = str(verdicts[attempt - 1])
        if answer != "UNKNOWN":
            decided.add(message_id)
        return answer

    with check_endpoint(verdict) as endpoint:
        topic = service.new_name("topic")
        group = service.group(endpoint.url, check_payload=True, max_inflight=16)
        items, planned = [], []
        for n in range(500):
            end = plan.choices(["COMMIT", "ROLLBACK", "UNKNOWN"], [7, 1, 2])[0]
            verdicts = plan.choices(["COMMIT", "ROLLBACK", "UNKNOWN"], [2, 1, 1], k=20)
            value = json.dumps({"number": n, "end": end, "verdicts": verdicts})
            items.append({"producer_group": group, "topic": topic, "key": str(n), "value": value})
            planned.append((end, verdicts[:3]))
        answer = service.http.post("/v1/half-messages/batch", json={"items": items})
        ids = [item["result"]["message_id"] for item in answer.json()["items"]]
        ends = [
            {"message_id": i, "decision": end} for i, (end, _) in zip(ids, planned, strict=True)
        ]
        decided.update(end["message_id"] for end in ends if end["decision"] != "UNKNOWN")
        service.http.post("/v1/half-messages/end-batch", json={"items": ends})
        expected = Counter(outcome(end, verdicts) for end, verdicts in planned)
        wait_for(lambda: states(service, group) == expected, 60)
    assert (unexpected, [pair for pair, times in asked.items() if times > 1]) == ([], [])
    committed = {
        message_id
        for message_id, (end, verdicts) in zip(ids, planned, strict=True)
        if outcome(end, verdicts) == "PUBLISHED"
    }
    assert Counter(r.message_id for r in service.records(topic)) == Counter(committed)


def outcome(end: str, verdicts: list[str]) -> str:
    """Return the state that a plan leads to with three checks at most."""
    for resolution in (end, *verdicts):
        if resolution != "UNKNOWN":
            return {"COMMIT": "PUBLISHED", "ROLLBACK": "ROLLED_BACK"}[resolution]
    return "PARKED"
