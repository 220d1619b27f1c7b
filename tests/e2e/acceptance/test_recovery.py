"""Acceptance: killed processes, full restarts and full load give the planned results."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from chaos.servers.probes import is_alive
from devservers.loopback import free_ports
from tests.e2e.fixtures_check_endpoint import check_endpoint
from tests.e2e.fixtures_service import Service, outbox_dev
from tests.fixtures_plain_http import NO_TLS
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka]

AN_HOUR_LATER = (
    "UPDATE outbox.half_message SET prepared_at = prepared_at - interval '1 hour'"
    " WHERE half_id = (SELECT max(half_id) FROM outbox.half_message) RETURNING half_id"
)


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


@pytest.mark.deep
def test_a20_others_finish_what_killed_processes_left_and_these_return_without_extra_records(
    tmp_path: Path,
) -> None:
    """The first check is on the wire while its checker dies. What died stays dead meanwhile."""
    (port,) = free_ports(1)
    killed = threading.Event()
    with ExitStack() as stack:
        service = stack.enter_context(outbox_dev(tmp_path / "data"))
        answer = {True: "COMMIT", False: "UNKNOWN"}
        endpoint = stack.enter_context(check_endpoint(lambda _: answer[killed.wait(60)]))
        stack.enter_context(second(service, "checker", checker_metrics_bind="127.0.0.1:0"))
        stack.enter_context(second(service, "api", http_bind=f"127.0.0.1:{port}"))
        wait_for(lambda: is_alive(port), seconds=60)
        url = f"http://127.0.0.1:{port}"
        other = replace(
            service,
            http=stack.enter_context(httpx2.Client(base_url=url, timeout=60, verify=NO_TLS)),
        )
        topic, group = service.new_topic(), service.group(endpoint.url)
        ids = [service.prepare(group, topic, key=str(n)) for n in range(16)]
        wait_for(lambda: endpoint.questions)
        ended = service.prepare(group, topic, check_immunity_seconds=5)
        dead = service.facts()["pids"]
        with without_replacement(service):
            assert service.end(ended, "COMMIT").status_code == 200
            for name in ("api", "checker"):
                os.kill(dead[name], signal.SIGKILL)
            killed.set()
            for message_id in (*ids, ended):
                other.wait_state(message_id, "PUBLISHED")
            assert service.facts()["pids"] == dead
        for name in ("api", "checker"):
            wait_for(lambda name=name: service.facts()["pids"][name] != dead[name])  # type: ignore[misc]
        wait_for(service.answers)
        late = service.prepare(group, topic)
        assert service.end(late, "COMMIT", wait=20).json()["state"] == "PUBLISHED"
        assert Counter(r.message_id for r in service.records(topic)) == Counter([*ids, ended, late])
        assert endpoint.asked(ended) == []


@contextmanager
def without_replacement(service: Service) -> Iterator[None]:
    """Stop the program that replaces dead ones, for the block."""
    service.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        service.process.send_signal(signal.SIGCONT)


def test_a39_a_message_prepared_an_hour_ago_by_a_dead_process_is_ended_through_another(
    service: Service,
) -> None:
    (port,) = free_ports(1)
    with check_endpoint(lambda _: "UNKNOWN") as endpoint:
        topic, group = service.new_topic(), service.group(endpoint.url, check_max=15)
        with second(service, "api", http_bind=f"127.0.0.1:{port}") as first:
            wait_for(lambda: is_alive(port), seconds=60)
            body = {"producer_group": group, "topic": topic, "value": "points"}
            url = f"http://127.0.0.1:{port}/v1/half-messages"
            message_id = httpx2.post(url, json=body, timeout=60, verify=NO_TLS).json()["message_id"]
            first.kill()
            first.wait(timeout=60)
        service.rows(AN_HOUR_LATER)
        answer = service.end(message_id, "COMMIT", wait=20)
    assert (answer.status_code, answer.json()["state"]) == (200, "PUBLISHED")
    assert [record.message_id for record in service.records(topic)] == [message_id]
