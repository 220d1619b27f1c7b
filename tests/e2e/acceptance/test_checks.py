"""Acceptance: check-back, seen from the producer's endpoint and from the topic."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest

from outbox.messages.message_id import parse_message_id
from tests.e2e.fixtures_check_endpoint import check_endpoint
from tests.e2e.fixtures_service import Service
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka]

OLD_TIMES = (
    ("half_message", "prepared_at"),
    ("parked_message", "parked_at"),
)


def seconds_between(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


@pytest.mark.parametrize(("policy", "state"), [("park", "PARKED"), ("rollback", "ROLLED_BACK")])
def test_a8_after_check_max_the_policy_decides(service: Service, policy: str, state: str) -> None:
    with check_endpoint(lambda _: "UNKNOWN") as endpoint:
        group = service.group(endpoint.url, on_check_max=policy, check_max=4)
        message_id = service.prepare(group, service.new_topic())
        message = service.wait_state(message_id, "PARKED", "ROLLED_BACK")
    assert (message["state"], message["check_count"]) == (state, 4)
    assert endpoint.asked(message_id) == [1, 2, 3, 4]
    assert message["decided_by"] == ("policy" if policy == "rollback" else None)


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


def settled(service: Service, group: str, total: int) -> Counter[str] | None:
    """Return the states of a group's messages once all are final."""
    states: Counter[str] = Counter()
    params: dict[str, str] = {"producer_group": group, "limit": "500"}
    page = service.http.get("/v1/half-messages", params=params).json()
    states.update(message["state"] for message in page["data"])
    done = states.total() == total and not states["PREPARED"] and not states["COMMITTED"]
    return states if done else None


def test_a32_a_parked_half_is_decided_by_a_late_end(service: Service) -> None:
    topic = service.new_topic()
    with check_endpoint(lambda _: "UNKNOWN") as endpoint:
        message_id = service.prepare(service.group(endpoint.url, check_max=1), topic)
        service.wait_state(message_id, "PARKED")
        first = service.end(message_id, "COMMIT", wait=20)
        again = service.end(message_id, "COMMIT")
        against = service.end(message_id, "ROLLBACK")
    assert (first.status_code, first.json()["already_ended"]) == (200, False)
    assert (again.status_code, again.json()["already_ended"]) == (200, True)
    assert (against.status_code, against.json()["winning_decision"]) == (409, "COMMIT")
    assert [record.message_id for record in service.records(topic)] == [message_id]


def test_a31_a_half_that_was_parked_for_100_hours_is_resumed_into_one_record(
    service: Service,
) -> None:
    answers = {"decision": "UNKNOWN"}
    topic = service.new_topic()
    with check_endpoint(lambda _: answers["decision"]) as endpoint:
        message_id = service.prepare(service.group(endpoint.url, check_max=1), topic)
        service.wait_state(message_id, "PARKED")
        half_id, _ = parse_message_id(message_id)
        for table, column in OLD_TIMES:
            moved = f"UPDATE outbox.{table} SET {column} = {column} - interval '100 hours'"
            (_,) = service.rows(f"{moved} WHERE half_id = %s RETURNING half_id", half_id)
        answers["decision"] = "COMMIT"
        who = {"operator": "ann", "reason": "endpoint repaired"}
        service.http.post(f"/v1/half-messages/{message_id}/recheck", json=who)
        message = service.wait_state(message_id, "PUBLISHED")
    assert seconds_between(message["prepared_at"], message["decided_at"]) > 100 * 3600
    assert endpoint.asked(message_id) == [1, 1]
    assert len(service.records(topic)) == 1
