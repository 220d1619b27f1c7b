"""Every error the client raises; errors of the service have the slug of its problem+json answer.

OutboxError
├── ServiceUnreachable          no complete answer within the timeout
├── BadAnswer                   an answer that does not come from the service
├── ServiceError                a problem+json answer; one subclass per slug, see ``BY_CODE``
│   └── AlreadyEnded, MessageNotFound, TransactionIdReused, RateLimited, …
├── PrepareFailed               raised by ``send_in_transaction``; the local transaction did not run
├── TransactionFenced           a check was answered ROLLBACK before the local transaction committed
└── DatabaseUnsupported         barrier and inbox give no guarantee on this database
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar


class OutboxError(Exception):
    """The outbox could not execute the call.

    ``args`` are the arguments of the constructor, so that an error can be pickled.

    ``retryable`` is True if the same call may succeed later; ``retry_after_seconds`` is the delay
    that the service asks for, if it sent one.
    """

    retryable: bool = False
    retry_after_seconds: float | None = None


class ServiceUnreachable(OutboxError):
    """The service gave no complete answer within the timeout."""

    retryable = True


class BadAnswer(OutboxError):
    """The answer does not come from the outbox service (a proxy's page, a broken body)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The members of a problem+json answer (RFC 9457) with the service's extensions."""

    status: int
    code: str
    title: str = ""
    detail: str = ""
    retryable: bool = False
    request_id: str | None = None
    errors: tuple[Mapping[str, str], ...] = ()
    members: Mapping[str, object] = field(default_factory=dict)


class ServiceError(OutboxError):
    """The service refused the request; ``problem`` has the reason.

    ``code`` is the problem's slug; ``retryable`` is the service's value.
    """

    slug: ClassVar[str] = ""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem
        self.retryable = problem.retryable

    def __str__(self) -> str:
        return f"{self.status} {self.code}: {self.problem.detail or self.problem.title}"

    @property
    def code(self) -> str:
        """The slug of the problem, also one without a class in this client."""
        return self.problem.code

    @property
    def status(self) -> int:
        """The HTTP status, or the status of the item in a batch."""
        return self.problem.status


class MalformedJson(ServiceError):
    """The body is not JSON."""

    slug = "malformed-json"


class Unauthenticated(ServiceError):
    """The API key is missing, unknown, expired or revoked."""

    slug = "unauthenticated"


class ScopeMissing(ServiceError):
    """The API key lacks the scope of this call."""

    slug = "scope-missing"


class TopicNotAllowed(ServiceError):
    """The producer group may not send to this topic."""

    slug = "topic-not-allowed"


class HalfMessagesRefused(ServiceError):
    """The service is being drained: it accepts ends, but no new half messages."""

    slug = "half-messages-refused"


class NotFound(ServiceError):
    """No such route or object."""

    slug = "not-found"


class MessageNotFound(ServiceError):
    """No message of the caller's groups has this id, or it has been retired."""

    slug = "message-not-found"


class UnknownGroup(ServiceError):
    """The producer group is not registered, or the caller may not use it."""

    slug = "unknown-group"


class AlreadyEnded(ServiceError):
    """The message is decided: an end contradicts the decision, or a prepare was repeated.

    ``winning_decision``, ``decided_by`` and ``decided_at`` are those of the first decision, as
    sent by the service. After a prepare the local transaction must not run.
    """

    slug = "already-ended"

    @property
    def message_id(self) -> str | None:
        """The id of the decided message."""
        return self._text("message_id")

    @property
    def winning_decision(self) -> str | None:
        """COMMIT or ROLLBACK, the final decision."""
        return self._text("winning_decision")

    @property
    def decided_by(self) -> str | None:
        """producer, check, operator, policy or recovery."""
        return self._text("decided_by")

    @property
    def decided_at(self) -> str | None:
        """The time of the decision, by the service's clock (RFC 3339)."""
        return self._text("decided_at")

    def _text(self, member: str) -> str | None:
        value = self.problem.members.get(member)
        return value if isinstance(value, str) else None


class PayloadTooLarge(ServiceError):
    """Key, value and headers together, or the body, are over the limit."""

    slug = "payload-too-large"


class BatchTooLarge(ServiceError):
    """The batch has too many items, or its body is over the limit."""

    slug = "batch-too-large"


class InvalidRequest(ServiceError):
    """A field breaks its rule; ``problem.errors`` has a pointer and a message for each."""

    slug = "invalid-request"


class TransactionIdReused(ServiceError):
    """The transaction id belongs to a message with other content."""

    slug = "transaction-id-reused"

    @property
    def existing_message_id(self) -> str | None:
        """The message that owns the transaction id."""
        value = self.problem.members.get("existing_message_id")
        return value if isinstance(value, str) else None


class TopicReserved(ServiceError):
    """The topic belongs to Kafka or to the service."""

    slug = "topic-reserved"


class UnknownTopic(ServiceError):
    """Kafka has no such topic."""

    slug = "unknown-topic"


class HeaderReserved(ServiceError):
    """The service writes this header itself."""

    slug = "header-reserved"


class PartitionOutOfRange(ServiceError):
    """The topic has fewer partitions."""

    slug = "partition-out-of-range"


class DelayNotSupported(ServiceError):
    """The request asks for a delayed delivery; a delay is refused, not ignored."""

    slug = "delay-not-supported"


class RateLimited(ServiceError):
    """The API key sends faster than its limit."""

    slug = "rate-limited"


class InternalError(ServiceError):
    """The service failed; its log has the request id."""

    slug = "internal-error"


class Overloaded(ServiceError):
    """The service has too much in flight and accepts no new half messages for now."""

    slug = "overloaded"


class DatabaseUnavailable(ServiceError):
    """The service's database does not accept writes for now."""

    slug = "database-unavailable"


class NotReady(ServiceError):
    """The service is starting or stopping."""

    slug = "not-ready"


BY_CODE: Mapping[str, type[ServiceError]] = {
    kind.slug: kind for kind in ServiceError.__subclasses__()
}
"""The class of each problem slug; any other slug is a plain ``ServiceError``."""


def error_of(problem: Problem) -> ServiceError:
    """Return the exception that mirrors ``problem``."""
    return BY_CODE.get(problem.code, ServiceError)(problem)


class PrepareFailed(OutboxError):
    """The half message could not be prepared, so the local transaction did not run.

    The cause is chained (``__cause__``). Sending the same message again is safe: it has the
    same ``transaction_id``, so a half message whose answer was lost is found again.
    """

    def __init__(self, transaction_id: str | None, cause: OutboxError) -> None:
        super().__init__(transaction_id, cause)
        self.transaction_id = transaction_id
        self.retryable = cause.retryable
        self.retry_after_seconds = cause.retry_after_seconds

    def __str__(self) -> str:
        transaction_id, cause = self.args
        return f"transaction {transaction_id} was not prepared: {cause}"


class TransactionFenced(OutboxError):
    """This message already has a barrier row: the local transaction must roll back.

    Either a check was answered ROLLBACK during the local transaction, or the same message was
    recorded before.
    """

    def __init__(self, message_id: str) -> None:
        super().__init__(message_id)
        self.message_id = message_id

    def __str__(self) -> str:
        return f"message {self.message_id} already has a barrier row: roll back"


class DatabaseUnsupported(OutboxError):
    """On this database, or through this connection, barrier and inbox give no guarantee."""
