"""From what the store says to what callers see: resources and refusals. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from api.http.problems import Problem, invalid
from api.ingest.schemas import EndedHalf, PreparedHalf, PublicationAt
from outbox.messages.message import (
    Ended,
    EndOutcome,
    MessageStatus,
    Prepared,
    State,
    TransactionIdReused,
    Unstorable,
)
from outbox.messages.message_id import HalfId, message_id_text


def prepared_half(prepared: Prepared, transaction_timeout_seconds: int) -> PreparedHalf:
    """Return a durable half message; its first check is at birth plus immunity (P27, P28)."""
    half, message = prepared.half, prepared.half.message
    immunity = timedelta(seconds=message.check_immunity_seconds or transaction_timeout_seconds)
    waits = prepared.state is State.PREPARED
    return PreparedHalf(
        message_id=message_id_text(half.half_id, half.nonce),
        state=prepared.state,
        producer_group=message.producer_group,
        transaction_id=message.transaction_id,
        topic=message.content.topic,
        prepared_at=half.prepared_at,
        next_check_at=half.prepared_at + immunity if waits else None,
    )


def not_prepared(outcome: TransactionIdReused | Unstorable) -> Problem:
    """Return why nothing was stored."""
    if isinstance(outcome, Unstorable):
        return invalid("", "the database cannot store this message")
    facts = {"existing_message_id": str(outcome.existing_message_id)}
    return Problem(slug="transaction-id-reused", facts=facts)


def unseen(standing: MessageStatus) -> bool:
    """Tell whether a committed message's place in Kafka is not known yet."""
    return standing.state in (State.COMMITTED, State.PUBLISHED) and standing.publication is None


def words(standing: MessageStatus) -> tuple[str, str]:
    assert standing.op is not None
    return standing.op.decision.value, standing.op.decided_by.value


def ended(outcome: EndOutcome, later: Mapping[HalfId, MessageStatus]) -> EndedHalf | Problem:
    """Return the answer to one end: the standing decision, or what is wrong."""
    if not isinstance(outcome, Ended):
        return Problem(slug="message-not-found")
    standing = later.get(outcome.standing.half_id, outcome.standing)
    if outcome.conflict:
        return already_ended(standing)
    return ended_half(standing, already_ended=outcome.already_ended)


def already_ended(standing: MessageStatus) -> Problem:
    """Return the refusal of an end against the standing decision (P22)."""
    op = standing.op
    assert op is not None
    facts = {
        "winning_decision": op.decision,
        "decided_by": op.decided_by,
        "decided_at": op.decided_at,
    }
    return Problem(slug="already-ended", facts=facts)


def ended_half(standing: MessageStatus, *, already_ended: bool) -> EndedHalf:
    """Return the standing decision as callers see it."""
    op, place = standing.op, standing.publication
    return EndedHalf(
        message_id=message_id_text(standing.half_id, standing.nonce),
        state=standing.state,
        decision=op.decision if op else None,
        decided_by=op.decided_by if op else None,
        decided_at=op.decided_at if op else None,
        already_ended=already_ended,
        publication=PublicationAt(
            topic=place.topic,
            partition=place.partition,
            offset=place.offset,
            published_at=place.published_at,
        )
        if place
        else None,
    )
