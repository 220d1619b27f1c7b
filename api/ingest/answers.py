"""Translates the store's answers to resources and refusals for callers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from msgspec import UNSET

from api.http.problems import Problem, invalid
from api.ingest.schemas import EndedHalf, PreparedHalf
from outbox.checks.producer_group import ProducerGroup
from outbox.messages.message import (
    AlreadyDecided,
    Ended,
    EndOutcome,
    GroupDeleted,
    MessageStatus,
    Prepared,
    PrepareOutcome,
    State,
)
from outbox.messages.message_id import HalfId, message_id_text

COMMITTED_BEFORE: Final = (
    "This message was prepared before and is committed: run no local transaction, read your own"
    " rows. Another local transaction needs a new `transaction_id`."
)
ROLLED_BACK_BEFORE: Final = (
    "This message was prepared before and is rolled back for ever: run no local transaction. To"
    " try again, prepare with a new `transaction_id`, such as this one with `/2` at its end."
)

OTHER_MESSAGE: Final = (
    "differs from the first prepare with this transaction_id: repeat that one unchanged, or choose"
    " a new transaction_id"
)


def prepare_answer(
    outcome: PrepareOutcome, groups: Mapping[str, ProducerGroup]
) -> tuple[PreparedHalf, bool] | Problem:
    """Return what is stored, and whether an earlier prepare did; or the reason why nothing was."""
    if isinstance(outcome, Prepared):
        half, message = outcome.half, outcome.half.message
        group = groups[message.producer_group]
        # The first check is due after the immunity (P27, P28).
        seconds = message.check_immunity_seconds or group.transaction_timeout_seconds
        waits = outcome.state is State.PREPARED
        resource = PreparedHalf(
            message_id=message_id_text(half.half_id, half.nonce),
            state=outcome.state,
            producer_group=message.producer_group,
            transaction_id=message.transaction_id,
            topic=message.topic,
            prepared_at=half.prepared_at,
            next_check_at=half.prepared_at + timedelta(seconds=seconds) if waits else None,
            message_ids=_ids_of(outcome) if outcome.followers else UNSET,
        )
        return resource, outcome.replayed
    if isinstance(outcome, AlreadyDecided):
        committed = outcome.status.state is not State.ROLLED_BACK
        return already_ended(outcome.status, COMMITTED_BEFORE if committed else ROLLED_BACK_BEFORE)
    if isinstance(outcome, GroupDeleted):
        return invalid("/producer_group", "was deleted meanwhile", "unknown-group")
    problem = invalid(f"/{outcome.member}", OTHER_MESSAGE, "transaction-id-reused")
    problem.facts = {"existing_message_id": str(outcome.existing_message_id)}
    return problem


def _ids_of(prepared: Prepared) -> list[str]:
    halves = (prepared.half, *prepared.followers)
    return [message_id_text(half.half_id, half.nonce) for half in halves]


def end_answer(
    outcome: EndOutcome, published: Mapping[HalfId, MessageStatus]
) -> EndedHalf | Problem:
    """Return the answer to one end: the final decision, or the refusal."""
    if not isinstance(outcome, Ended):
        return Problem(slug="message-not-found")
    if outcome.status.leader is not None:
        return follows(str(outcome.status.leader))
    status = published.get(outcome.status.half_id, outcome.status)
    if outcome.conflict:
        return already_ended(status)
    op = status.op
    return EndedHalf(
        message_id=message_id_text(status.half_id, status.nonce),
        state=status.state,
        decision=op.decision if op else None,
        decided_by=op.decided_by if op else None,
        decided_at=op.decided_at if op else None,
        already_ended=outcome.already_ended,
        publication=status.publication,
    )


def follows(leader_id: str) -> Problem:
    """Return the refusal to decide or check a message by another id than that of its leader."""
    return Problem(slug="follows-another", facts={"leader_id": leader_id})


def already_ended(status: MessageStatus, detail: str | None = None) -> Problem:
    """Return the refusal of a contradicting end; with a detail of its own, of a prepare (P22)."""
    op = status.op
    assert op is not None
    facts = {
        "message_id": message_id_text(status.half_id, status.nonce),
        "winning_decision": op.decision,
        "decided_by": op.decided_by,
        "decided_at": op.decided_at,
    }
    return Problem(slug="already-ended", detail=detail, facts=facts)
