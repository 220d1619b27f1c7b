"""Acceptance: prepare, end and check-back, seen from the check endpoint and from the topic."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.fixtures_check_endpoint import check_endpoint
from tests.e2e.fixtures_service import Service
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka]


def test_a18_of_120_messages_exactly_the_committed_are_consumed(service: Service) -> None:
    verdicts = {2: "COMMIT", 3: "ROLLBACK", 4: "UNKNOWN"}
    with check_endpoint(lambda q: verdicts[int(q["key"]) % 5]) as endpoint:
        group, topic = service.group(endpoint.url), service.new_topic()
        with ThreadPoolExecutor(8) as executor:
            ids = list(
                executor.map(lambda n: service.prepare(group, topic, key=str(n)), range(120))
            )
            now = [(n, "COMMIT" if n % 5 == 0 else "ROLLBACK") for n in range(120) if n % 5 < 2]
            list(executor.map(lambda pair: service.end(ids[pair[0]], pair[1]), now))
        states = wait_for(lambda: settled(service, group, 120), 60)
    assert states == Counter(PUBLISHED=48, ROLLED_BACK=48, PARKED=24)
    committed = [message_id for n, message_id in enumerate(ids) if n % 5 in (0, 2)]
    assert Counter(r.message_id for r in service.records(topic)) == Counter(committed)
    uncommitted = service.records(topic, committed=False)
    assert {record.message_id for record in uncommitted} == set(committed)


def settled(service: Service, group: str, total: int) -> Counter[str] | None:
    """Return the states of a group's messages once all are final."""
    states: Counter[str] = Counter()
    params: dict[str, str] = {"producer_group": group, "limit": "500"}
    page = service.http.get("/v1/half-messages", params=params).json()
    states.update(message["state"] for message in page["data"])
    done = states.total() == total and not states["PREPARED"] and not states["COMMITTED"]
    return states if done else None
