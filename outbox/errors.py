"""Every error of the library; its text has the facts.

OutboxError
├── ConfigurationError          a setting is missing, unknown or contradicts another
├── InvalidMessageId            text that cannot be a message id of this service
├── InvalidManifest             bytes that are no manifest, or a wrong checksum
├── CheckUrlForbidden           a check URL that the SSRF guard refuses, with the rule
├── ScopeMissing                the caller's key lacks a scope that this change needs
├── UnknownGroup                no producer group of that name (for this caller)
├── GroupInUse                  the group still has undecided or unpublished messages
├── PreconditionFailed          the stored object is not the version that the caller read
├── PreconditionRequired        a change of an existing object must name its version
├── MessageNotFound             no message of that id (for this caller)
├── NotRecheckable              a decided message cannot be checked again
├── TimePast                    a time that must be in the future is past, by PostgreSQL's clock
├── Overloaded                  a bounded queue is full; try again later
├── SessionsOpen                programs use the database that must be alone for this operation
├── RunOvertaken                another reconciliation is in progress, or has moved the cut
├── CursorMoved                 another process has settled these rows; nothing was written
├── CommittedMessageGone        the row of a committed message or of its decision is missing
├── DatabaseUnavailable         PostgreSQL is down, read-only or refuses connections
│   ├── DatabaseRefused         PostgreSQL refuses a statement: a right, a stranger's trigger
│   ├── SchemaBehind            the database lacks a table or a column: a migration is missing
│   └── UnsafeServer            PostgreSQL answers, but a setting makes the guarantees void
│       └── IdsBehind           new ids would be lower than stored ones: a restored database
└── KafkaUnavailable            Kafka did not answer in time
    ├── KafkaForbidden          this principal lacks a right in Kafka; the text names it
    └── PublisherFenced         a newer producer of the shard exists, or ours is unusable
"""

from __future__ import annotations

from collections.abc import Sequence


class OutboxError(Exception):
    """The outbox refuses an operation or cannot do it; subclasses have the facts."""


class ConfigurationError(OutboxError):
    """A setting is missing, unknown or contradicts another one."""


class InvalidMessageId(OutboxError):
    """The text is not a message id that this service could have issued."""


class InvalidManifest(OutboxError):
    """The bytes are not a manifest of a known version, or their checksum differs."""


class CheckUrlForbidden(OutboxError):
    """A check must not call this URL; ``rule`` refuses it. The URL itself is not included."""

    def __init__(self, rule: str) -> None:
        super().__init__(f"the check URL is refused by the rule {rule}")
        self.rule = rule


class ScopeMissing(OutboxError):
    """The caller's key lacks a scope; ``purpose`` completes the sentence "the key needs it to"."""

    def __init__(self, scope: str, purpose: str) -> None:
        super().__init__(f"the key needs {scope} to {purpose}")


class UnknownGroup(OutboxError):
    """No producer group has this name, or the caller may not see it."""

    def __init__(self, producer_group: str) -> None:
        super().__init__(f"producer group {producer_group!r} is not registered")


class GroupInUse(OutboxError):
    """The producer group still has undecided or unpublished messages."""

    def __init__(self, producer_group: str) -> None:
        super().__init__(f"producer group {producer_group!r} still has unfinished messages")


class PreconditionFailed(OutboxError):
    """The stored version is not the version that the caller has read."""

    def __init__(self, version: int) -> None:
        super().__init__(f"the stored version is {version}")


class PreconditionRequired(OutboxError):
    """The object exists, and the caller did not name the version to change."""


class MessageNotFound(OutboxError):
    """No message has this id, or the caller may not see it; both are the same answer (P18)."""


class NotRecheckable(OutboxError):
    """The message is already decided."""


class TimePast(OutboxError):
    """A time that must be in the future is past, by PostgreSQL's clock, which decides."""

    def __init__(self) -> None:
        super().__init__("is in the past, by PostgreSQL's clock")


class NotHeld(OutboxError):
    """The record is already released or dropped."""


class Overloaded(OutboxError):
    """A bounded queue is full; nothing was stored."""

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__("the service is at its limit of waiting requests")
        self.retry_after_seconds = retry_after_seconds


class CursorMoved(OutboxError):
    """Another process has moved this cursor in the meantime; nothing was written."""


class RunOvertaken(OutboxError):
    """Another reconciliation is in progress, or has moved the cut since this one started."""

    def __init__(
        self, why: str = "another run has finished in the meantime; nothing was stored"
    ) -> None:
        super().__init__(why)


class SessionsOpen(OutboxError):
    """Programs use the database, which must be alone for this operation."""

    def __init__(self, programs: Sequence[str]) -> None:
        super().__init__(f"the database is in use by {', '.join(programs)}")


class DatabaseUnavailable(OutboxError):
    """PostgreSQL cannot be reached or cannot write; the result of the last write is unknown."""


class DatabaseRefused(DatabaseUnavailable):
    """PostgreSQL refuses a statement for a missing right or by a stranger's trigger; it says so."""


class SchemaBehind(DatabaseUnavailable):
    """The database lacks a table, a column or a function that this version needs."""


class UnsafeServer(DatabaseUnavailable):
    """PostgreSQL is back with a setting that makes the guarantees void; it is not used."""


class IdsBehind(UnsafeServer):
    """New ids of this cluster would be lower than ids that are stored; it is not used."""

    def __init__(self, following: int, highest: int) -> None:
        super().__init__(
            f"the next id of this PostgreSQL cluster ({following}) is not above the highest stored"
            f" one ({highest}): after a restore into another cluster, stop every process and run:"
            " outbox installation rebase --reason TEXT"
        )


class KafkaUnavailable(OutboxError):
    """Kafka did not answer within the time allowed."""


class RecordUnread(KafkaUnavailable):
    """A record was not read in time, or has a header name that the client cannot decode."""


class KafkaForbidden(KafkaUnavailable):
    """This principal lacks a right in Kafka; the text names the right and the resource."""


class CommittedMessageGone(OutboxError):
    """The row of a committed message or of its decision is missing; its shard halts."""

    def __init__(self, half_id: int) -> None:
        super().__init__(f"half_message or op_message has no row {half_id}, which is committed")


class TransactionStuck(KafkaUnavailable):
    """Kafka cannot end the last transaction of a transactional id."""


class PublisherFenced(KafkaUnavailable):
    """A newer producer of this shard exists, or the handle cannot be used any more."""
