"""The decision table: one pure function from the facts of a message to causes of findings.

A missing record is judged by the position of the manifests, an unexpected one by the snapshot. Read
this module first; the others of this folder only collect the facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from spark.findings.finding_class import Cause


class Decision(StrEnum):
    """The decision of a half message in the snapshot."""

    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    NONE = "NONE"
    ABSENT = "ABSENT"


class Listed(StrEnum):
    """The status of a message in the manifests up to the cut; of several the most final one."""

    PUBLISHED = "P"
    PUBLISHED_BEFORE = "S"
    HELD = "K"
    NOWHERE = "-"


class Held(StrEnum):
    """The state of a message that Kafka refused."""

    OPEN = "open"
    DROPPED = "dropped"
    RELEASED = "released"
    NEVER = "never"


class Content(StrEnum):
    """The part of a record that differs from its half message; of several the worst one."""

    SAME = "same"
    TOPIC = "topic"
    VALUE = "value"
    KEY = "key"
    HEADER = "header"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All facts that decide about one message at the cut."""

    decision: Decision
    judged: bool = False
    """Committed at or below the cut of its shard."""
    listed: Listed = Listed.NOWHERE
    unlisted: bool = False
    """It need not be in a manifest: those of that time are lost, or have expired."""
    copies: int = 0
    """Visible records with its id, without those ahead of the cut."""
    ahead: int = 0
    redriven: int = 0
    """The number of copies that an operator's repair published."""
    content: Content = Content.SAME
    held: Held = Held.NEVER
    release_read: bool = False
    """The run has read the batch, or without manifests the place, that is stored as its release."""
    forgotten: bool = False
    """PostgreSQL had lost it, and the relay's recovery found it in Kafka."""
    retired: bool = False
    """Its id is older than everything that the database still keeps."""
    again: bool = False
    """An earlier run had read the batch of one of its records before the record was written, and
    did not miss the message: its first record may have expired."""
    verifiable: bool = True
    """Its topic was read up to the cut, and its recorded place has not expired."""


def classify(facts: Facts) -> tuple[Cause, ...]:
    """Return the causes of a message's findings: none, or up to two of different kinds."""
    if facts.decision is not Decision.COMMIT:
        return _unexpected(facts) if facts.copies + facts.ahead else ()
    if facts.copies + facts.ahead == 0:
        return _missing(facts) if facts.judged and facts.verifiable else ()
    return (*_duplicate(facts), *MISMATCH_CAUSES[facts.content])


def _duplicate(facts: Facts) -> tuple[Cause, ...]:
    """Return the cause of an additional record, by whether a repair explains it."""
    if facts.copies < 2 and not facts.again:
        return ()
    if facts.redriven and facts.copies <= facts.redriven + 1:
        return (Cause.DUPLICATE_REDRIVEN,)
    return (Cause.DUPLICATE_REPEATED,)


MISMATCH_CAUSES: Final[dict[Content, tuple[Cause, ...]]] = {
    Content.SAME: (),
    Content.TOPIC: (Cause.WRONG_PLACE_TOPIC,),
    Content.VALUE: (Cause.ALTERED_VALUE,),
    Content.KEY: (Cause.ALTERED_KEY,),
    Content.HEADER: (Cause.ALTERED_HEADER,),
}


def _unexpected(facts: Facts) -> tuple[Cause, ...]:
    if facts.decision is Decision.ROLLBACK:
        return (Cause.ORPHAN_ROLLED_BACK,)
    if facts.decision is Decision.NONE:
        return (Cause.ORPHAN_UNDECIDED,)
    if facts.forgotten:
        return (Cause.ORPHAN_FORGOTTEN,)
    return () if facts.retired and not facts.again else (Cause.ORPHAN_UNKNOWN,)


def _missing(facts: Facts) -> tuple[Cause, ...]:
    if facts.listed in (Listed.PUBLISHED, Listed.PUBLISHED_BEFORE):
        return (Cause.LOST_PUBLISHED,)
    was_held = facts.unlisted or facts.listed is Listed.HELD
    if was_held and facts.held is Held.RELEASED and facts.release_read:
        return (Cause.LOST_PUBLISHED,)
    if facts.listed is Listed.HELD:
        return _HELD[facts.held]
    if facts.unlisted:
        return (Cause.LOST_PUBLISHED,) if facts.held is Held.NEVER else _HELD[facts.held]
    return (Cause.LOST_SKIPPED,)


_HELD: Final[dict[Held, tuple[Cause, ...]]] = {
    Held.OPEN: (Cause.UNPUBLISHED_HELD,),
    Held.DROPPED: (Cause.UNPUBLISHED_GIVEN_UP,),
    Held.RELEASED: (),
    Held.NEVER: (Cause.LOST_SKIPPED,),
}
"""RELEASED: the release is newer than the cut. NEVER: listed as held, but no row holds it."""
