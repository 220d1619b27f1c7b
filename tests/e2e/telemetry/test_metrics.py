"""What the API and the checker serve on /metrics after known traffic, value by value."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from outbox.telemetry.metrics import CATALOGUE, NAMESPACE
from tests.e2e.fixtures_check_endpoint import check_endpoint
from tests.e2e.fixtures_service import Service
from tests.fixtures_plain_http import NO_TLS
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.e2e]

PROCESS = {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"}


class Pages:
    """The metrics of a running installation."""

    def __init__(self, service: Service) -> None:
        facts = service.facts()
        bind = self._checker_bind(facts["pids"]["checker"])
        self._urls = [f"{facts['api_url']}/metrics", f"http://{bind}/metrics"]

    def value(self, name: str, **labels: str) -> float | None:
        """Return the value that one of the programs has for exactly these labels."""
        found = [value for each, own, value in self.samples() if (each, own) == (name, labels)]
        return max(found) if found else None

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """Return name without prefix, labels and value of every sample of both programs."""
        return chain.from_iterable(self.by_program())

    def by_program(self) -> Iterator[list[tuple[str, dict[str, str], float]]]:
        """Yield the samples of each program."""
        for url in self._urls:
            families = text_string_to_metric_families(
                httpx2.get(url, timeout=30, verify=NO_TLS).text
            )
            yield [
                (each.name.removeprefix(f"{NAMESPACE}_"), dict(each.labels), each.value)
                for family in families
                for each in family.samples
            ]

    @staticmethod
    def _checker_bind(pid: int) -> str:
        """Return the address that the checker was given."""
        given = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
        name = "OUTBOX_CHECKER_METRICS_BIND="
        return next(each.removeprefix(name) for each in given if each.startswith(name))


def test_every_sample_has_exactly_the_labels_of_the_catalogue(service: Service) -> None:
    known = {metric.name: set(metric.labels) for metric in CATALOGUE}
    served, pages = set(), Pages(service)
    for name, labels, _ in pages.samples():
        if name.startswith("process_"):
            continue
        base = name
        for suffix in ("_bucket", "_count", "_sum"):
            if name not in known and name.endswith(suffix):
                base = name.removesuffix(suffix)
        base = base if base in known else f"{base}_total"
        assert labels.keys() - {"le"} == known[base], name
        served.add(base)
    assert {"build_info", "db_pool_max", "checker_heartbeat_timestamp_seconds"} <= served
    for program in pages.by_program():
        assert {name for name, _, _ in program} >= PROCESS


def test_ends_checks_and_publications_are_counted(service: Service) -> None:
    pages, topic = Pages(service), service.new_topic("metrics")
    group = traffic(service, topic)
    of_group = {"producer_group": group}
    expected = {
        ("half_prepared_total", ()): 3.0,
        ("half_ended_total", ("COMMIT", "producer")): 1.0,
        ("half_ended_total", ("ROLLBACK", "producer")): 1.0,
        ("half_ended_total", ("COMMIT", "check")): 1.0,
        ("end_conflicts_total", ("ROLLBACK", "producer")): 1.0,
    }
    for (name, decided), number in expected.items():
        labels = dict(zip(("decision", "decided_by"), decided, strict=False)) or {"key_id": ""}
        assert pages.value(name, **of_group, **labels) == number, name
    for name in ("checks_total", "check_duration_seconds_count"):
        assert pages.value(name, **of_group, outcome="commit") == 1
    assert pages.value("check_inflight", **of_group) == 0
    assert wait_for(lambda: pages.value("publish_total", topic=topic, **of_group) == 2)
    assert (pages.value("publish_latency_seconds_count", topic=topic) or 0) >= 2


def test_each_program_measures_its_own_work(service: Service) -> None:
    pages = Pages(service)
    traffic(service, service.new_topic("metrics"))
    route = {"route": "/v1/half-messages/{message_id}/end", "method": "POST"}
    measured: list[tuple[str, dict[str, str]]] = [
        ("relay_batch_records", {}),
        ("relay_commit_seconds", {}),
        ("relay_replay_seconds", {}),
        *(("db_tx_duration_seconds", {"operation": name}) for name in ("prepare", "end")),
        *(
            ("http_request_duration_seconds", {**route, "status": status})
            for status in ("200", "409")
        ),
        *(
            ("half_resolution_duration_seconds", {"decision": made, "decided_by": "producer"})
            for made in ("COMMIT", "ROLLBACK")
        ),
    ]
    for name, labels in measured:
        assert (pages.value(f"{name}_count", **labels) or 0) >= 1, (name, labels)
    assert (pages.value("http_requests_total", **route, status="409") or 0) >= 1
    for task in ("relay", "check", "sweep", "retire", "leaves"):
        beat = pages.value("checker_heartbeat_timestamp_seconds", task=task)
        assert abs((beat or 0) - time.time()) < 600, task


def traffic(service: Service, topic: str) -> str:
    """End one message each way, contradict one, lose one end; return the new group's name."""
    with check_endpoint(lambda _: "COMMIT") as endpoint:
        group = service.group(endpoint.url)
        lost = service.prepare(group, topic)
        ended, undone = (service.prepare(group, topic, check_immunity_seconds=3600) for _ in "12")
        assert service.end(ended, "COMMIT", wait=30).status_code == 200
        assert service.end(undone, "ROLLBACK").status_code == 200
        assert service.end(undone, "COMMIT").status_code == 409
        service.wait_state(lost, "PUBLISHED")
    return group
