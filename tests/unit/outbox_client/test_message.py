"""A message is a frozen value with its own transaction id."""

from dataclasses import FrozenInstanceError

import pytest

from outbox_client import Message


def test_a_missing_transaction_id_is_generated_once() -> None:
    message = Message("orders", "v")
    assert message.transaction_id
    assert message.transaction_id != Message("orders", "v").transaction_id


def test_a_given_transaction_id_is_kept() -> None:
    assert Message("orders", "v", transaction_id="invoice-7").transaction_id == "invoice-7"


def test_a_message_is_frozen_and_keeps_its_own_headers() -> None:
    headers = {"tenant": "north"}
    message = Message("orders", "v", headers=headers)
    headers["tenant"] = "south"
    assert message.headers == {"tenant": "north"}
    with pytest.raises(FrozenInstanceError):
        message.topic = "other"  # type: ignore[misc]
