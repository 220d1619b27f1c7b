"""The body of a check-back is read as the contract defines it."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from outbox_client.checks.request import Refused, read_check_request
from tests.unit.outbox_client.fixtures_checks import MESSAGE_ID, SENT_AT, batch, make_check, single


def test_a_single_check_is_read() -> None:
    request = read_check_request(single())
    check = request.checks[0]
    assert not request.batch
    assert (check.message_id, check.transaction_id) == (MESSAGE_ID, "invoice-7731")
    assert (check.attempt, check.max_attempts) == (2, 15)
    assert (check.key, check.has_value) == ("cust-58", False)
    assert check.headers == {"tenant": "north", "schema": b"\xff", "none": None}
    assert check.prepared_at == datetime(2026, 9, 21, 14, 13, 26, tzinfo=UTC)


def test_the_time_to_answer_is_a_difference_on_the_services_clock() -> None:
    late = make_check(reply_by=(SENT_AT + timedelta(seconds=9)).isoformat())
    assert read_check_request(batch(late, make_check())).budget == timedelta(seconds=5)


def test_a_binary_key_and_a_value_are_read() -> None:
    plain = {name: value for name, value in make_check().items() if name != "key"}
    check = read_check_request(single(plain | {"key_base64": "AP8=", "value": None})).checks[0]
    assert (check.key, check.value, check.has_value) == (b"\x00\xff", None, True)


def test_a_message_without_transaction_id_key_and_headers_is_read() -> None:
    sparse = make_check(transaction_id=None)
    del sparse["key"], sparse["headers"]
    check = read_check_request(single(sparse)).checks[0]
    assert (check.transaction_id, check.key, check.headers) == (None, None, {})


def test_members_of_a_later_version_are_ignored() -> None:
    assert read_check_request(single(make_check(brand_new=[1]))).checks[0].attempt == 2


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        json.dumps({"type": "transaction.other", "data": make_check()}).encode(),
        single(make_check(message_id=7)),
        single(make_check(attempt="two")),
        single(make_check(reply_by="soon")),
        single(make_check(reply_by="2026-09-21T14:14:07")),
        single(make_check(headers=[])),
        batch(),
        b"[" * 100_000,
    ],
)
def test_anything_else_is_refused_as_unreadable(body: bytes) -> None:
    with pytest.raises(Refused) as caught:
        read_check_request(body)
    assert caught.value.status == 400
