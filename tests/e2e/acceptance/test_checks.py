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
    ("parked_message", "prepared_at"),
    ("parked_message", "parked_at"),
)


def seconds_between(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def test_a2_a_check_that_answers_commit_publishes(service: Service) -> None:
    topic = service.new_topic()
    with check_endpoint(lambda _: "COMMIT") as endpoint:
        message_id = service.prepare(service.group(endpoint.url), topic)
        message = service.wait_state(message_id, "PUBLISHED")
    assert (message["decision"], message["decided_by"]) == ("COMMIT", "check")
    (record,) = service.records(topic)
    assert dict(record.headers)["outbox_decided_by"] == "check"
    assert endpoint.asked(message_id) == [1]
    assert endpoint.questions[0]["topic"] == topic


@pytest.mark.parametrize(("policy", "state"), [("park", "PARKED"), ("rollback", "ROLLED_BACK")])
def test_a8_after_check_max_the_policy_decides(service: Service, policy: str, state: str) -> None:
    with check_endpoint(lambda _: "UNKNOWN") as endpoint:
        group = service.group(endpoint.url, on_check_max=policy, check_max=4)
        message_id = service.prepare(group, service.new_topic())
        message = service.wait_state(message_id, "PARKED", "ROLLED_BACK")
    assert (message["state"], message["check_count"]) == (state, 4)
    assert endpoint.asked(message_id) == [1, 2, 3, 4]
    assert message["decided_by"] == ("policy" if policy == "rollback" else None)


def test_a9_only_the_undecided_half_is_checked(service: Service) -> None:
    with check_endpoint(lambda _: "ROLLBACK") as endpoint:
        # Five seconds: on a busy machine it takes more than one to end the others.
        group = service.group(endpoint.url, transaction_timeout_seconds=5)
        topic = service.new_topic()
        ids = [service.prepare(group, topic, value=str(n)) for n in range(9)]
        for message_id in (*ids[:4], *ids[5:]):
            service.end(message_id, "ROLLBACK")
        service.wait_state(ids[4], "ROLLED_BACK")
    assert [question["message_id"] for question in endpoint.questions] == [ids[4]]


def test_a12_with_one_call_in_flight_every_due_half_is_checked_once(service: Service) -> None:
    with check_endpoint(lambda _: "ROLLBACK") as endpoint:
        group = service.group(endpoint.url, max_inflight=1)
        ids = [service.prepare(group, service.new_topic()) for _ in range(10)]
        for message_id in ids:
            service.wait_state(message_id, "ROLLED_BACK")
    assert Counter(q["message_id"] for q in endpoint.questions) == Counter(ids)


def test_a19_a_half_is_checked_at_its_own_immunity(service: Service) -> None:
    """Scaled: 3 s instead of 10."""
    with check_endpoint(lambda _: "COMMIT") as endpoint:
        group = service.group(endpoint.url, transaction_timeout_seconds=600)
        message_id = service.prepare(group, service.new_topic(), check_immunity_seconds=3)
        message = service.wait_state(message_id, "PUBLISHED")
    checked_after = seconds_between(message["prepared_at"], message["last_check"]["at"])
    assert 3 <= checked_after <= 4 + 2, (
        "due at 3 s, asked within a second (two spare on a busy machine)"
    )


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


def test_a22_the_quickstart_sends_sixty_six_checks(service: Service) -> None:
    """Ten messages, ended UNKNOWN; answers by number: UNKNOWN, COMMIT, ROLLBACK."""
    answers = ("UNKNOWN", "COMMIT", "ROLLBACK")
    with check_endpoint(lambda q: answers[int(q["key"]) % 3]) as endpoint:
        group, topic = service.group(endpoint.url, check_max=15), service.new_topic()
        for n in range(10):
            service.end(service.prepare(group, topic, key=str(n)), "UNKNOWN")
        states = wait_for(lambda: settled(service, group, 10), 90)
    assert states == Counter(PUBLISHED=3, ROLLED_BACK=3, PARKED=4)
    assert len(endpoint.questions) == 66
    assert len(service.records(topic)) == 3


@pytest.mark.deep
def test_a23_the_five_message_demo_sends_seventeen_checks(service: Service) -> None:
    answers = {"3": "UNKNOWN", "4": "COMMIT", "5": "ROLLBACK"}
    with check_endpoint(lambda q: answers[q["key"]]) as endpoint:
        group, topic = service.group(endpoint.url, check_max=15), service.new_topic()
        ids = {n: service.prepare(group, topic, key=str(n)) for n in range(1, 6)}
        service.end(ids[1], "COMMIT")
        service.end(ids[2], "ROLLBACK")
        wait_for(lambda: settled(service, group, 5), 90)
    assert {r.message_id for r in service.records(topic)} == {ids[1], ids[4]}
    states = {n: service.get(message_id)["state"] for n, message_id in ids.items()}
    assert states == {
        1: "PUBLISHED",
        2: "ROLLED_BACK",
        3: "PARKED",
        4: "PUBLISHED",
        5: "ROLLED_BACK",
    }
    assert len(endpoint.questions) == 17


def test_a26_the_first_durable_decision_beats_the_verdict_on_the_wire(service: Service) -> None:
    topic = service.new_topic()

    def end_first(question: dict[str, object]) -> str:
        service.end(str(question["message_id"]), "ROLLBACK")
        return "COMMIT"

    with check_endpoint(end_first) as endpoint:
        message_id = service.prepare(service.group(endpoint.url), topic)
        wait_for(lambda: service.get(message_id)["last_check"])
    message = service.get(message_id)
    assert (message["state"], message["decided_by"]) == ("ROLLED_BACK", "producer")
    events = service.http.get(f"/v1/half-messages/{message_id}/history").json()["events"]
    (check,) = (event for event in events if event["type"] == "check")
    assert (check["outcome"], check["applied"]) == ("commit", False)
    assert service.records(topic) == []


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


def test_a17_a_parked_half_that_is_resumed_is_checked_again(service: Service) -> None:
    answers = {"decision": "UNKNOWN"}
    topic = service.new_topic()
    with check_endpoint(lambda _: answers["decision"]) as endpoint:
        message_id = service.prepare(service.group(endpoint.url, check_max=1), topic)
        service.wait_state(message_id, "PARKED")
        answers["decision"] = "COMMIT"
        who = {"operator": "ann", "reason": "endpoint repaired"}
        path = f"/v1/half-messages/{message_id}/recheck"
        first = service.http.post(path, json=who)
        service.http.post(path, json=who)
        message = service.wait_state(message_id, "PUBLISHED")
        refused = service.http.post(path, json=who)
    assert (first.status_code, first.json()["state"]) == (202, "PREPARED")
    assert message["decided_by"] == "check"
    assert (refused.status_code, refused.json()["code"]) == (409, "not-recheckable")
    assert len(service.records(topic)) == 1
