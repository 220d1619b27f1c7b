"""End: join a flush, answer after its commit, or once Kafka has the message. Knows no HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from api.http.problems import Problem, invalid
from api.ingest.answers import end_answer
from api.ingest.batch_items import each_valid
from api.ingest.batcher import MicroBatcher
from api.ingest.ingest_metrics import IngestMetrics
from api.ingest.name_cache import NameCache
from api.ingest.prepare_rules import CONTROLS
from api.ingest.publication_wait import PublicationWait
from api.ingest.schemas import EndedHalf, EndRequest
from outbox.access import Caller
from outbox.errors import InvalidMessageId
from outbox.messages.message import End, Ended, EndOutcome, MessageStatus, State
from outbox.messages.message_id import HalfId, parse_message_id


@dataclass(frozen=True, slots=True)
class Ends:
    """The use case of an end."""

    flushes: MicroBatcher[End, EndOutcome]
    names: NameCache
    publications: PublicationWait
    metrics: IngestMetrics

    async def decide(
        self,
        requests: Sequence[tuple[str, EndRequest] | Problem],
        caller: Caller,
        wait_seconds: int | None,
    ) -> tuple[Sequence[EndedHalf | Problem], bool]:
        """Decide half messages, named by their ids; answer each in order after its commit.

        Returns the answers, and False if too many callers wait for Kafka.
        ``wait_seconds`` waits once, for all of them, until Kafka has acknowledged the committed.
        Raises DatabaseUnavailable; the same ends may be repeated.
        """
        groups, awaited = await self.names.group_ids(caller), bool(wait_seconds)
        checked = each_valid(requests, lambda request: end_of(*request, groups, awaited=awaited))
        ends = [end for end in checked if isinstance(end, End)]
        outcomes = await self.flushes.submit(ends)
        await self.metrics.ended(outcomes)
        published = await self._wait(outcomes, caller, wait_seconds) if wait_seconds else {}
        answers = iter([end_answer(outcome, published or {}) for outcome in outcomes])
        in_order = [item if isinstance(item, Problem) else next(answers) for item in checked]
        return in_order, published is not None

    async def _wait(
        self, outcomes: Sequence[EndOutcome], caller: Caller, seconds: int
    ) -> Mapping[HalfId, MessageStatus] | None:
        """Return the statuses of the messages that Kafka acknowledged in time, or None."""
        open_ids = {
            outcome.status.half_id
            for outcome in outcomes
            if isinstance(outcome, Ended)
            and not outcome.conflict
            and outcome.status.state in (State.COMMITTED, State.PUBLISHED)
            and outcome.status.publication is None
        }
        return await self.publications.wait(caller.tenant, sorted(open_ids), seconds)


def end_of(
    message_id: str, request: EndRequest, groups: frozenset[int] | None, *, awaited: bool
) -> End:
    """Return the decision to store; raises Problem for the first rule that is broken."""
    try:
        half_id, nonce = parse_message_id(message_id)
    except InvalidMessageId:
        raise Problem(slug="message-not-found") from None
    if request.reason and "\x00" in request.reason:
        raise invalid("/reason", "must not hold a NUL character")
    if request.transaction_id and CONTROLS.search(request.transaction_id):
        raise invalid("/transaction_id", "must not hold a control character")
    return End(
        half_id=half_id,
        nonce=nonce,
        decision=request.decision,
        groups=groups,
        transaction_id=request.transaction_id,
        reason=request.reason,
        awaited=awaited,
    )
