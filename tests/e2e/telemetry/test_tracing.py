"""Traces of a whole installation, as a collector receives them over OTLP."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.fixtures_check_endpoint import check_endpoint
from tests.e2e.fixtures_service import Service, outbox_dev
from tests.fixtures_spans import CALLER, RECORDED, TRACE, Collector, Received, collector
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.deep]


def prepared(service: Service, group: str, topic: str) -> str:
    """Prepare a message within the caller's trace; return its id."""
    body = {"producer_group": group, "topic": topic, "value": "points"}
    answer = service.http.post("/v1/half-messages", json=body, headers={"traceparent": RECORDED})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["message_id"])


def span_of(traces: Collector, name: str, message_id: str) -> Received:
    """Wait for the span of a message."""

    def look() -> Received | None:
        found = [
            span
            for span in traces.named(name)
            if span.attributes.get("messaging.message.id") == message_id
        ]
        return found[0] if found else None

    found = wait_for(look)
    assert found is not None
    return found


def test_traces_lead_to_the_record_and_a_collector_that_goes_away_delays_nothing(
    tmp_path: Path,
) -> None:
    """From the caller over the check to the record; the programs stop at once all the same."""
    with ExitStack() as collecting, check_endpoint(lambda _: "COMMIT") as endpoint:
        traces = collecting.enter_context(collector())
        with outbox_dev(
            tmp_path / "data",
            OTEL_EXPORTER_OTLP_ENDPOINT=traces.url,
            OTEL_BSP_SCHEDULE_DELAY="200",
        ) as service:
            group, topic = service.group(endpoint.url), service.new_topic("traced")
            traced(service, traces, group, topic)
            (record,) = service.records(topic)
            assert endpoint.traceparents == [dict(record.headers)["traceparent"]]
            collecting.close()
            answer = service.end(prepared(service, group, topic), "COMMIT", wait=30)
            assert answer.json()["state"] == "PUBLISHED"
            logs = [service.data_dir / f"{name}.log" for name in ("api", "checker")]
            for log in logs:
                wait_for(partial(lost_lines, log))
    assert service.process.returncode == 0
    for log in logs:
        assert len(lost_lines(log)) == 1, "once, not at each attempt"


def traced(service: Service, traces: Collector, group: str, topic: str) -> None:
    """Prepare a message that a check decides; its spans and its record name the caller's trace."""
    message_id = prepared(service, group, topic)
    prepare = wait_for(lambda: next(iter(traces.named("POST /v1/half-messages")), None))
    assert prepare is not None
    assert (prepare.trace_id, prepare.parent_id) == (TRACE, CALLER)
    assert prepare.service == "outbox-api"

    send = span_of(traces, f"send {topic}", message_id)
    assert (send.service, send.links) == ("outbox-checker", (prepare.span_id,))
    (record,) = service.records(topic)
    assert dict(record.headers)["traceparent"][3:52] == f"{TRACE}-{prepare.span_id}"


def lost_lines(log: Path) -> list[str]:
    """Return the lines of a program's log that say that the collector is away."""
    return [line for line in log.read_text("utf-8").splitlines() if "trace collector" in line]
