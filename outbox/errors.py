"""Every error the library raises; each carries its facts as attributes.

OutboxError
├── ConfigurationError          a setting is missing, unknown or contradicts another
├── InvalidMessageId            text that no message id of ours can be
├── InvalidManifest             bytes that are no manifest, or one whose checksum differs
├── CheckUrlForbidden           a check URL that the callback guard refuses, and by which rule
├── UnknownGroup                no producer group of that name (for this caller)
├── GroupInUse                  a group that still has undecided or unpublished messages
├── PreconditionFailed          the stored object is not the one the caller had read
├── PreconditionRequired        an existing object is changed only by naming its version
├── MessageNotFound             no message of that id (for this caller)
├── NotRecheckable              a decided message cannot be checked again
├── Overloaded                  a bounded queue is full; try again later
├── ShardsHeld                  relays are at work on shards that nobody may hold meanwhile
├── RunOvertaken                another reconciliation has moved the cut; nothing was stored
│   └── RunUnderWay             another reconciliation is at work; nothing was begun
├── CursorMoved                 another process has settled these rows; nothing was written
├── DatabaseUnavailable         PostgreSQL is down, read-only or refuses connections
│   ├── UnsafeServer            PostgreSQL is there, with settings under which no promise holds
│   └── CommittedMessageMissing a committed message whose row is not where it must be
└── KafkaUnavailable            Kafka did not answer in time
    └── PublisherFenced         a newer producer of the shard exists, or ours is beyond repair
"""

from __future__ import annotations

from collections.abc import Sequence


class OutboxError(Exception):
    """Something the outbox refuses or cannot do; subclasses say what, as facts."""


class ConfigurationError(OutboxError):
    """A setting is missing, unknown or contradicts another one."""


class InvalidMessageId(OutboxError):
    """The text is not a message id that this service could have issued."""


class InvalidManifest(OutboxError):
    """The bytes are not a manifest of a known version, or their checksum differs."""


class CheckUrlForbidden(OutboxError):
    """A check must not go to this URL; ``rule`` names what refuses it, never the URL itself."""

    def __init__(self, rule: str) -> None:
        super().__init__(f"the check URL is refused by the rule {rule}")
        self.rule = rule


class UnknownGroup(OutboxError):
    """No producer group has this name, or none that the caller may see."""

    def __init__(self, producer_group: str) -> None:
        super().__init__(f"producer group {producer_group!r} is not registered")
        self.producer_group = producer_group


class GroupInUse(OutboxError):
    """The producer group still has undecided or unpublished messages."""

    def __init__(self, producer_group: str) -> None:
        super().__init__(f"producer group {producer_group!r} still has unfinished messages")
        self.producer_group = producer_group


class PreconditionFailed(OutboxError):
    """The stored version is not the one that the caller had read."""

    def __init__(self, version: int) -> None:
        super().__init__(f"the stored version is {version}")
        self.version = version


class PreconditionRequired(OutboxError):
    """The object exists, and the caller did not say which version of it is to be changed."""


class MessageNotFound(OutboxError):
    """No message has this id, or none that the caller may see; both look alike (P18)."""


class NotRecheckable(OutboxError):
    """The message is decided, so there is nothing left to ask."""


class NotHeld(OutboxError):
    """The record is released or dropped, so there is nothing left to settle."""


class Overloaded(OutboxError):
    """A bounded queue is full; nothing was stored."""

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__("the service is at its limit of waiting requests")
        self.retry_after_seconds = retry_after_seconds


class CursorMoved(OutboxError):
    """Another process has moved this cursor meanwhile; nothing was written."""


class RunOvertaken(OutboxError):
    """Another reconciliation has moved the cut since this one began; nothing was stored."""

    def __init__(self) -> None:
        super().__init__("another run has finished meanwhile; nothing was stored")


class RunUnderWay(RunOvertaken):
    """Another reconciliation is under way; nothing was begun."""

    def __init__(self) -> None:
        OutboxError.__init__(self, "another run is under way; nothing was begun")


class ShardsHeld(OutboxError):
    """Relays are at work on shards that nobody may hold meanwhile."""

    def __init__(self, shards: Sequence[int]) -> None:
        super().__init__(f"relays hold the shards {', '.join(map(str, shards))}")


class DatabaseUnavailable(OutboxError):
    """PostgreSQL cannot be reached or cannot write; whether the last write stands is unknown."""


class UnsafeServer(DatabaseUnavailable):
    """PostgreSQL has come back with settings under which no promise holds; it is not used."""


class KafkaUnavailable(OutboxError):
    """Kafka did not answer within the time allowed."""


class CommittedMessageMissing(DatabaseUnavailable):
    """The commit log names a message that is neither in its leaf nor parked."""

    def __init__(self, half_id: int) -> None:
        super().__init__(f"no half message {half_id}")
        self.half_id = half_id


class PublisherFenced(KafkaUnavailable):
    """A newer producer of this shard exists, or the handle is beyond repair."""
