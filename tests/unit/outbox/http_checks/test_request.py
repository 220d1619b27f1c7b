from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

from outbox.http_checks.request import CheckRequest, check_request
from outbox.messages.message import HalfMessage
from tests.fixtures_messages import make_group
from tests.unit.checker.checks.fixtures_queue_rows import NOW, make_half, make_row

UNIQUE = "0123456789abcdef" * 2
KEY = b"k" * 32


def secret(key: bytes) -> str:
    return f"whsec_{base64.b64encode(key).decode()}"


def asked(half: HalfMessage, **fields: Any) -> CheckRequest:
    group = make_group(**{"secrets": (secret(KEY),), **fields})
    row = make_row(half=half, round=3, check_count=1)
    return check_request(group, [row], NOW, UNIQUE)


def data_of(request: CheckRequest) -> Any:
    return json.loads(request.body)["data"]


def test_a_check_names_the_message_and_nothing_of_its_value() -> None:
    half = make_half(
        transaction_id="invoice-7731", headers=(("tenant", b"north"), ("a", b"\xff"), ("n", None))
    )
    request = asked(half)
    document = json.loads(request.body)
    assert (document["type"], document["timestamp"]) == (
        "transaction.check",
        "2026-09-21T14:14:02.000Z",
    )
    assert document["data"] == {
        "message_id": str(half.message_id),
        "transaction_id": "invoice-7731",
        "producer_group": "account",
        "messages": 1,
        "topic": "points-earned",
        "key": "member-1",
        "headers": {"tenant": "north", "a": {"base64": "/w=="}, "n": None},
        "attempt": 2,
        "max_attempts": 15,
        "prepared_at": "2026-09-21T14:14:02.000Z",
        "reply_by": "2026-09-21T14:14:07.000Z",
    }


def test_the_webhook_id_is_fresh_for_every_round_and_attempt() -> None:
    half = make_half()
    assert asked(half).headers["webhook-id"] == f"chk_{half.message_id}_3_2"
    assert asked(half).headers["outbox-attempt"] == "2/15"


def test_the_signature_is_the_standard_one_over_id_time_and_body() -> None:
    request = asked(make_half())
    headers = request.headers
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.body
    mac = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-timestamp"] == str(int(NOW.timestamp()))
    assert headers["webhook-signature"] == f"v1,{mac}"


def test_bytes_that_are_no_text_are_sent_as_base64() -> None:
    data = data_of(asked(make_half(key=b"\xff\x00"), check_payload=True))
    assert ("key" in data, data["key_base64"]) == (False, base64.b64encode(b"\xff\x00").decode())


def test_the_value_is_sent_where_the_group_asks_for_it() -> None:
    assert data_of(asked(make_half(value="köln".encode()), check_payload=True))["value"] == "köln"
    assert data_of(asked(make_half(value=None), check_payload=True))["value"] is None
    assert "value" not in data_of(asked(make_half()))


def test_a_batch_has_an_id_of_its_own_and_lists_its_checks() -> None:
    request = asked(make_half(), batch_check=True)
    document = json.loads(request.body)
    assert document["type"] == "transaction.check.batch"
    assert len(document["data"]["checks"]) == 1
    assert request.headers["webhook-id"] == f"chk_batch_{UNIQUE}"
    assert "outbox-attempt" not in request.headers
