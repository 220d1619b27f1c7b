"""The endpoint verifies first, calls its listener once per check, and answers UNKNOWN in doubt."""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from threading import Event

import pytest

from outbox_client import Check, CheckEndpoint, LocalTransactionState, Reply, Unknown
from tests.unit.outbox_client.fixtures_checks import (
    GROUP,
    MESSAGE_ID,
    OTHER_SECRET,
    SECRET,
    SENT_AT,
    batch,
    make_check,
    signed_headers,
    single,
)

COMMIT = LocalTransactionState.COMMIT


class Listener:
    """Returns a given answer, and records the checks."""

    def __init__(self, answer: Callable[[Check], object] = lambda check: COMMIT) -> None:
        self.answer = answer
        self.asked: list[Check] = []

    def check_local_transaction(self, check: Check, /) -> LocalTransactionState | None:
        self.asked.append(check)
        return self.answer(check)  # type: ignore[return-value]


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def endpoint(listener: Listener) -> Iterator[CheckEndpoint]:
    with CheckEndpoint(GROUP, SECRET, listener) as endpoint:
        yield endpoint


def ask(endpoint: CheckEndpoint, body: bytes) -> Reply:
    return endpoint.handle(signed_headers(body), body)


def answer_of(endpoint: CheckEndpoint, check: dict[str, object] | None = None) -> dict[str, str]:
    reply = ask(endpoint, single(check))
    assert (reply.status, reply.content_type) == (200, "application/json")
    answer = json.loads(reply.body)
    assert isinstance(answer, dict)
    return answer


@pytest.mark.parametrize("seconds", [-1, 3601, 1.5])
def test_a_delay_that_the_service_refuses_raises(seconds: int) -> None:
    with pytest.raises(ValueError, match="0 to 3600"):
        Unknown(retry_after_seconds=seconds)


def test_an_exception_of_the_listener_means_unknown_without_details(
    listener: Listener, endpoint: CheckEndpoint
) -> None:
    def fail(check: Check) -> object:
        raise LookupError("host=secret-host")

    listener.answer = fail
    answer = answer_of(endpoint)
    assert answer == {
        "message_id": MESSAGE_ID,
        "decision": "UNKNOWN",
        "reason": "the listener raised LookupError",
    }


@pytest.mark.parametrize("error", [LookupError, SystemExit, asyncio.CancelledError])
def test_one_failing_check_of_a_batch_does_not_affect_the_others(
    listener: Listener, endpoint: CheckEndpoint, error: type[BaseException]
) -> None:
    def fail_on_a(check: Check) -> object:
        if check.message_id == "a":
            raise error
        return COMMIT

    listener.answer = fail_on_a
    reply = ask(endpoint, batch(make_check("a"), make_check("b")))
    decisions = [verdict["decision"] for verdict in json.loads(reply.body)["verdicts"]]
    assert decisions == ["UNKNOWN", "COMMIT"]


def test_a_slow_check_of_a_batch_does_not_delay_the_quick_one(
    listener: Listener, endpoint: CheckEndpoint
) -> None:
    release = Event()
    listener.answer = lambda check: release.wait(10) if check.message_id == "slow" else COMMIT
    soon = (SENT_AT + timedelta(milliseconds=300)).isoformat()
    slow, quick = make_check("slow", reply_by=soon), make_check("quick", reply_by=soon)
    reply = ask(endpoint, batch(slow, quick))
    release.set()
    decisions = [verdict["decision"] for verdict in json.loads(reply.body)["verdicts"]]
    assert decisions == ["UNKNOWN", "COMMIT"]


def test_during_a_rotation_both_secrets_are_valid(listener: Listener) -> None:
    with CheckEndpoint(GROUP, [OTHER_SECRET, SECRET], listener) as endpoint:
        for secret in (SECRET, OTHER_SECRET):
            headers = signed_headers(single(), secret)
            assert endpoint.handle(headers, single()).status == 200


def test_an_endpoint_without_a_secret_is_refused(listener: Listener) -> None:
    with pytest.raises(ValueError, match="check secret"):
        CheckEndpoint(GROUP, [], listener)
    with pytest.raises(ValueError, match="empty"):
        CheckEndpoint(GROUP, "whsec_", listener)


def test_a_closed_endpoint_is_unavailable_and_spends_no_check(listener: Listener) -> None:
    endpoint = CheckEndpoint(GROUP, SECRET, listener)
    endpoint.close()
    assert ask(endpoint, single()).status == 503
    assert listener.asked == []
