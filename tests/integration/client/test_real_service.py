"""The client against the real service in a separate process: both use the same contract."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from outbox_client import (
    AlreadyEnded,
    Ending,
    EndResult,
    LocalTransactionState,
    Message,
    PreparedMessage,
    PrepareFailed,
    ServiceError,
    TransactionProducer,
)
from outbox_client.errors import (
    MessageNotFound,
    TopicReserved,
    TransactionIdReused,
    UnknownGroup,
)
from tests.integration.api.fixtures_api_process import served
from tests.integration.api.fixtures_service import CHECK_URL, GROUP, GROUPS, TOPIC

pytestmark = pytest.mark.postgres

COMMIT, ROLLBACK = LocalTransactionState.COMMIT, LocalTransactionState.ROLLBACK
UNKNOWN = LocalTransactionState.UNKNOWN
NOBODY = "0f6c1c0e-8d0b-8c55-9a54-6f2b7c1d9e10"


def a_message_with_every_field_is_stored_once(producer: TransactionProducer) -> None:
    message = Message(
        TOPIC,
        b"\x00\xff",
        key=b"\xfe",
        partition=0,
        headers={"tenant": "north"},
        content_type="application/octet-stream",
        transaction_id="every-field",
        check_immunity_seconds=60,
        tags=("a", "b"),
    )
    same = replace(message, value=memoryview(b"\x00\xff"), tags=("b", "a"))
    first, again = producer.prepare(message), producer.prepare(same)
    assert (first.state, first.replayed, again.replayed) == ("PREPARED", False, True)
    assert (first.topic, first.producer_group) == (TOPIC, GROUP)
    assert again.message_id == first.message_id
    assert first.next_check_at == first.prepared_at + timedelta(seconds=60)
    with pytest.raises(TransactionIdReused) as caught:
        producer.prepare(Message(TOPIC, "other", transaction_id="every-field"))
    assert caught.value.existing_message_id == first.message_id


def a_repeated_send_runs_nothing_and_names_who_decided(producer: TransactionProducer) -> None:
    ran: list[PreparedMessage] = []

    def pay(prepared: PreparedMessage) -> LocalTransactionState:
        ran.append(prepared)
        return COMMIT

    message = Message(TOPIC, None)
    sent = producer.send_in_transaction(message, pay)
    assert (sent.local_state, sent.state, sent.end_delivered) == (COMMIT, "COMMITTED", True)
    assert (sent.transaction_id, sent.publication) == (message.transaction_id, None)
    with pytest.raises(AlreadyEnded) as caught:
        producer.send_in_transaction(message, pay)
    assert (caught.value.winning_decision, caught.value.decided_by) == ("COMMIT", "producer")
    assert caught.value.decided_at is not None
    assert caught.value.message_id == sent.message_id
    [refused] = producer.prepare_batch([message])
    assert isinstance(refused, AlreadyEnded)
    assert len(ran) == 1


def several_messages_have_one_decision(producer: TransactionProducer) -> None:
    messages = [Message(TOPIC, "order", transaction_id="order-8"), Message(TOPIC, "pay", key="k")]
    prepared = producer.prepare(messages)
    assert (prepared.message, len(prepared.message_ids)) == (messages[0], 2)
    with pytest.raises(TransactionIdReused):
        producer.prepare(messages[:1])
    with pytest.raises(ServiceError, match="follows-another"):
        producer.end(prepared.message_ids[1], COMMIT)
    assert producer.end(prepared.message_id, ROLLBACK).state == "ROLLED_BACK"
    sent = producer.send_in_transaction(messages, lambda _: COMMIT, attempts=2)
    assert (sent.transaction_id, sent.state) == ("order-8/2", "COMMITTED")
    with pytest.raises(ValueError, match="empty list"):
        producer.prepare([])


def a_business_id_that_was_rolled_back_is_prepared_again(producer: TransactionProducer) -> None:
    order = Message(TOPIC, "v", transaction_id="order-7")
    died = producer.prepare(order)
    producer.end(died.message_id, ROLLBACK)  # as a check of it is answered
    with pytest.raises(AlreadyEnded):
        producer.send_in_transaction(order, lambda _: COMMIT)
    sent = producer.send_in_transaction(order, lambda _: COMMIT, attempts=2)
    assert (sent.transaction_id, sent.state) == ("order-7/2", "COMMITTED")
    with pytest.raises(AlreadyEnded) as caught:
        producer.send_in_transaction(order, lambda _: COMMIT, attempts=3)
    assert (caught.value.message_id, caught.value.winning_decision) == (sent.message_id, "COMMIT")


def a_standing_decision_against_the_local_state_is_raised(producer: TransactionProducer) -> None:
    def end_first(prepared: PreparedMessage) -> LocalTransactionState:
        producer.end(prepared.message_id, ROLLBACK, reason="by hand")
        return COMMIT

    with pytest.raises(AlreadyEnded) as caught:
        producer.send_in_transaction(Message(TOPIC, "v"), end_first)
    assert caught.value.winning_decision == "ROLLBACK"


def each_item_of_a_batch_has_its_own_fate(producer: TransactionProducer) -> None:
    asked = [Message(TOPIC, "1"), Message("__bad", "2"), Message(TOPIC, "3")]
    one, bad, three = producer.prepare_batch(asked)
    assert isinstance(one, PreparedMessage)
    assert isinstance(bad, TopicReserved)
    assert isinstance(three, PreparedMessage)
    endings = [
        Ending(one.message_id, COMMIT),
        Ending(NOBODY, COMMIT),
        Ending(three.message_id, ROLLBACK, "no"),
    ]
    committed, missing, rolled_back = producer.end_batch(endings)
    assert isinstance(committed, EndResult)
    assert isinstance(missing, MessageNotFound)
    assert isinstance(rolled_back, EndResult)
    assert (committed.state, rolled_back.state) == ("COMMITTED", "ROLLED_BACK")


TALKS: tuple[Callable[[TransactionProducer], None], ...] = (
    a_message_with_every_field_is_stored_once,
    a_repeated_send_runs_nothing_and_names_who_decided,
    a_business_id_that_was_rolled_back_is_prepared_again,
    several_messages_have_one_decision,
    a_standing_decision_against_the_local_state_is_raised,
    each_item_of_a_batch_has_its_own_fate,
)


async def test_the_client_reads_the_answers_of_the_service(
    database_url: str, subtests: pytest.Subtests
) -> None:
    async with served(database_url, seconds=180) as service:
        url = f"http://127.0.0.1:{service.port}"
        with TransactionProducer(url, "nobody", timeout=60) as stranger:
            with pytest.raises(PrepareFailed) as caught:
                await asyncio.to_thread(stranger.send_in_transaction, Message(TOPIC, "v"), print)
            assert isinstance(caught.value.__cause__, UnknownGroup)
        await service.client.put(f"{GROUPS}/{GROUP}", json={"check_url": CHECK_URL})
        with TransactionProducer(url, GROUP, timeout=60) as producer:
            for talk in TALKS:
                with subtests.test(talk.__name__):
                    await asyncio.to_thread(talk, producer)
