"""Requests are built and answers are read without a network."""

import json
from uuid import UUID

import pytest

from api.http.problems import KINDS, WAITING_STATUSES
from outbox_client import Ending, LocalTransactionState, Message
from outbox_client.calls import protocol
from outbox_client.calls.protocol import Answer
from outbox_client.errors import (
    BY_CODE,
    BadAnswer,
    OutboxError,
    ServiceError,
)

COMMIT = LocalTransactionState.COMMIT


def make_answer(status: int, members: object, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, headers=named, body=json.dumps(members).encode())


def body_of(message: Message) -> dict[str, object]:
    body = json.loads(protocol.prepare_item("billing", message))
    assert isinstance(body, dict)
    return body


def test_every_field_of_a_message_is_sent() -> None:
    message = Message(
        "invoices",
        "v",
        key="k",
        partition=0,
        headers={"tenant": "north", "schema": bytearray(b"\xff"), "none": None},
        content_type="application/json",
        transaction_id="invoice-7",
        check_immunity_seconds=60,
        tags=("night",),
    )
    assert body_of(message) == {
        "producer_group": "billing",
        "topic": "invoices",
        "value": "v",
        "key": "k",
        "partition": 0,
        "headers": {"tenant": "north", "schema": {"base64": "/w=="}, "none": None},
        "content_type": "application/json",
        "transaction_id": "invoice-7",
        "check_immunity_seconds": 60,
        "tags": ["night"],
    }


def test_an_end_takes_a_uuid_as_the_id_of_its_message() -> None:
    ending = Ending(UUID(int=7), COMMIT)
    assert protocol.end_request(ending, wait=0).path.endswith("-000000000007/end")
    assert json.loads(protocol.end_item(ending, with_id=True))["message_id"] == str(UUID(int=7))


def test_an_end_names_its_message_in_the_path_and_its_wait_in_the_prefer_header() -> None:
    request = protocol.end_request(Ending("a/b", COMMIT, "paid"), wait=5)
    assert request.path == "/v1/half-messages/a%2Fb/end"
    assert json.loads(request.body) == {"decision": "COMMIT", "reason": "paid"}
    assert request.headers == {"prefer": "wait=5"}


@pytest.mark.parametrize(
    ("sizes", "runs"),
    [
        ([], []),
        ([1] * 1001, [range(1000), range(1000, 1001)]),
        ([4_000_000, 4_000_000, 10], [range(1), range(1, 3)]),
        ([9_000_000, 10], [range(1), range(1, 2)]),
    ],
)
def test_a_long_list_is_split_into_requests_that_the_service_accepts(
    sizes: list[int], runs: list[range]
) -> None:
    assert protocol.split_batches([b"x" * size for size in sizes]) == runs


def problem(status: int, code: str, **members: object) -> Answer:
    return make_answer(status, {"code": code, "title": "t", "status": status, **members})


def raised_by(answer: Answer) -> OutboxError:
    with pytest.raises(OutboxError) as caught:
        protocol.read_ended(answer)
    return caught.value


def test_the_slugs_are_the_services_and_none_that_may_pass_later_is_missing() -> None:
    assert BY_CODE.keys() <= KINDS.keys()
    passing = {slug for slug, kind in KINDS.items() if kind.status in WAITING_STATUSES}
    assert passing <= BY_CODE.keys()


def test_a_slug_of_a_later_version_is_still_a_service_error() -> None:
    error = raised_by(problem(418, "brand-new", retryable=True))
    assert type(error) is ServiceError
    assert (error.code, error.retryable) == ("brand-new", True)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>hello COMMIT</html>"),
        (200, b"[]"),
        (200, b'{"state":"PREPARED"}'),
        (200, b'{"message_id":"a","state":"X","decision":"MAYBE"}'),
        (201, b'{"message_id":"a","state":"PREPARED"}'),
        (302, b""),
        (500, b"oops"),
    ],
)
def test_an_answer_outside_of_the_contract_is_a_bad_answer(status: int, body: bytes) -> None:
    assert isinstance(raised_by(Answer(status=status, headers={}, body=body)), BadAnswer)


@pytest.mark.parametrize(
    "items",
    [None, [], [{"index": 1, "status": 201}], [{"index": 0}], ["text"]],
)
def test_a_batch_answer_without_every_item_is_refused(items: object) -> None:
    with pytest.raises(BadAnswer):
        protocol.read_batch(make_answer(207, {"items": items}), 1)
