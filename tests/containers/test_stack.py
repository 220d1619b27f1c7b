"""The shipped files make a stack that starts, works, survives crashes, stops and comes back."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.containers.fixtures_page import commands, typed
from tests.containers.fixtures_stack import KILLED, Stack
from tests.e2e.fixtures_check_endpoint import check_endpoint
from tests.e2e.fixtures_topic_reader import read_topic
from tests.fixtures_waiting import wait_for

pytestmark = pytest.mark.usefixtures("watch")

LASTING = ("postgres", "kafka", "api", "proxy", "checker")
ONE_SHOT = ("migrate", "logins")
AWAY = (502, 503, 504)
"""What the proxy, or the API, answers while a part is missing."""
TOPIC = "orders"
GROUP = "shop"


@pytest.fixture(scope="module")
def group(stack: Stack) -> Iterator[str]:
    """Yield a group whose producer runs on this machine and answers every check with COMMIT."""
    typed(stack, *commands("Topics"))
    with check_endpoint(lambda _: "COMMIT", bind="0.0.0.0") as endpoint, stack.http() as http:
        url = endpoint.url.replace("127.0.0.1", "host.docker.internal")
        settings = {"check_url": url, "transaction_timeout_seconds": 1, "check_interval_seconds": 1}
        answer = http.put(f"/v1/producer-groups/{GROUP}", json=settings)
        assert answer.status_code == 201, answer.text
        yield GROUP


def prepare(stack: Stack, group: str) -> dict[str, Any]:
    """Prepare a message through the published port; a broken connection is tried again."""
    body = {"producer_group": group, "topic": TOPIC, "value": "paid", "key": "k"}
    body["transaction_id"] = uuid.uuid4().hex
    with stack.http() as http:
        answer = wait_for(lambda: attempt(lambda: http.post("/v1/half-messages", json=body)), 120)
    members: dict[str, Any] = answer.json()
    return members


def attempt(call: Any) -> Any:
    """Return the answer of a call, or nothing while the service is away."""
    try:
        answer = call()
    except httpx2.TransportError:
        return None
    assert answer.status_code < 500 or answer.status_code in AWAY, answer.text
    return answer if answer.status_code < 300 else None


def publish(stack: Stack, group: str) -> str:
    """Commit a message and wait until Kafka has it; return its id."""
    message_id = str(prepare(stack, group)["message_id"])
    with stack.http() as http:
        path = f"/v1/half-messages/{message_id}"
        wait_for(lambda: attempt(lambda: http.post(f"{path}/end", json={"decision": "COMMIT"})))
        wait_for(lambda: state_of(http, path) == "PUBLISHED", 120, every=0.5)
    return message_id


def state_of(http: Any, path: str) -> str | None:
    answer = attempt(lambda: http.get(path))
    return answer.json()["state"] if answer else None


def consumed(stack: Stack) -> list[str]:
    """Return the ids of all records that a consumer on this machine reads."""
    address = f"localhost:{stack.ports['KAFKA_PORT']}"
    return [record.message_id for record in read_topic(address, TOPIC)]


def test_everything_is_up_and_what_runs_once_has_succeeded(stack: Stack) -> None:
    assert all(stack.is_healthy(service) for service in LASTING)
    ended = {name: stack.containers()[name]["State"] for name in ONE_SHOT}
    assert {(state["Status"], state["ExitCode"]) for state in ended.values()} == {("exited", 0)}


def test_a_message_goes_from_the_published_port_to_a_consumer_on_this_machine(
    stack: Stack, group: str
) -> None:
    message_id = publish(stack, group)
    assert consumed(stack).count(message_id) == 1


def test_a_producer_on_this_machine_is_asked_and_believed(stack: Stack, group: str) -> None:
    path = f"/v1/half-messages/{prepare(stack, group)['message_id']}"
    with stack.http() as http:
        wait_for(lambda: state_of(http, path) == "PUBLISHED", 120, every=0.5)
        assert http.get(path).json()["decided_by"] == "check"


def test_a_command_in_the_apis_container_finds_the_api(stack: Stack) -> None:
    printed = typed(stack, commands("Start")[1], OUTBOX_API_KEY=stack.admin_key)
    assert json.loads(printed)["has_more"] is False


def test_the_doctor_finds_nothing_that_fails(stack: Stack) -> None:
    found = json.loads(stack.compose("exec", "-T", "api", "outbox", "doctor", "-o", "json"))
    assert {each["verdict"] for each in found} <= {"ok", "warning"}


def test_no_secret_is_shown_by_the_engine(stack: Stack) -> None:
    texts = [path.read_text() for path in (stack.folder / "deploy/secrets").iterdir()]
    shown = json.dumps(stack.containers())
    assert len(texts) >= 8
    assert [text for text in texts if text.strip() in shown] == []
    passwords = {found for text in texts for found in re.findall(r":([\w-]{20,})@", text)}
    assert passwords
    assert [each for each in passwords if each in shown] == []


@pytest.mark.parametrize("service", LASTING)
def test_messages_go_through_after_a_crash_of_any_container(
    stack: Stack, group: str, service: str
) -> None:
    stack.crash(service)
    message_id = publish(stack, group)
    wait_for(lambda: stack.is_healthy(service), 180, every=1)
    assert consumed(stack).count(message_id) == 1


def test_every_container_stops_within_its_grace_and_starts_again(stack: Stack, group: str) -> None:
    stack.compose("stop", *LASTING)
    ended = {each: stack.containers()[each]["State"]["ExitCode"] for each in LASTING}
    assert KILLED not in ended.values(), ended
    stack.compose("up", "--detach", "--wait", *LASTING)
    message_id = publish(stack, group)
    assert consumed(stack).count(message_id) == 1


def test_what_was_stopped_comes_up_with_its_data_and_leaves_nothing_else(
    stack: Stack, group: str
) -> None:
    before = publish(stack, group)
    stack.run("make", "down")
    mine = f"label=com.docker.compose.project={stack.environment['COMPOSE_PROJECT_NAME']}"
    assert stack.run("docker", "ps", "--all", "--quiet", "--filter", mine) == ""
    assert stack.run("docker", "network", "ls", "--quiet", "--filter", mine) == ""
    kept = stack.run("docker", "volume", "ls", "--quiet", "--filter", mine).split()
    assert {"outbox-test_postgres-data", "outbox-test_kafka-data"} <= set(kept)
    stack.up()
    assert consumed(stack).count(before) == 1
    assert publish(stack, group) in consumed(stack)
