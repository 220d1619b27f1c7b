"""The decision table: one pure function from the facts of a message to classes of findings.

A missing record is judged by the position of the manifests, an unexpected one by the snapshot. Read
this module first; the others of this folder only collect the facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from spark.findings.finding_class import FindingClass


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
    matched_before: bool = False
    """An earlier run found its one record: each record seen now is an additional one."""
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
    """One of its records was written after an earlier run had read the batch that it names."""
    verifiable: bool = True
    """Its topic was read up to the cut, and its recorded place has not expired."""


def classify(facts: Facts) -> tuple[FindingClass, ...]:
    """Return the classes of a message's faults: none, or up to two of different kinds."""
    if facts.decision is not Decision.COMMIT:
        return _unexpected(facts) if facts.copies + facts.ahead else ()
    if facts.matched_before:
        return _repeated(facts, FindingClass.DUPLICATE_LATE) if facts.copies else ()
    if facts.copies + facts.ahead == 0:
        return _missing(facts) if facts.judged and facts.verifiable else ()
    return (*_duplicate(facts), *MISMATCH_CLASSES[facts.content])


def _duplicate(facts: Facts) -> tuple[FindingClass, ...]:
    return _repeated(facts, FindingClass.DUPLICATE) if facts.copies > 1 else ()


def _repeated(facts: Facts, unexplained: FindingClass) -> tuple[FindingClass, ...]:
    """Return the class of an additional record, by whether a repair explains it."""
    explained = facts.redriven + (0 if facts.matched_before else 1)
    if facts.redriven and facts.copies <= explained:
        return (FindingClass.REDRIVEN,)
    return (unexplained,)


MISMATCH_CLASSES: Final[dict[Content, tuple[FindingClass, ...]]] = {
    Content.SAME: (),
    Content.TOPIC: (FindingClass.WRONG_TOPIC,),
    Content.VALUE: (FindingClass.CORRUPT_VALUE,),
    Content.KEY: (FindingClass.WRONG_KEY,),
    Content.HEADER: (FindingClass.HEADER_DRIFT,),
}


def _unexpected(facts: Facts) -> tuple[FindingClass, ...]:
    if facts.decision is Decision.ROLLBACK:
        return (FindingClass.ROLLED_BACK,)
    if facts.decision is Decision.NONE:
        return (FindingClass.UNDECIDED,)
    if facts.forgotten:
        return (FindingClass.PG_REGRESSION,)
    return () if facts.retired and not facts.again else (FindingClass.UNKNOWN_ID,)


def _missing(facts: Facts) -> tuple[FindingClass, ...]:
    if facts.listed in (Listed.PUBLISHED, Listed.PUBLISHED_BEFORE):
        return (FindingClass.LOST,)
    was_held = facts.unlisted or facts.listed is Listed.HELD
    if was_held and facts.held is Held.RELEASED and facts.release_read:
        return (FindingClass.LOST,)
    if facts.listed is Listed.HELD:
        return _HELD[facts.held]
    if facts.unlisted:
        return (FindingClass.LOST,) if facts.held is Held.NEVER else _HELD[facts.held]
    return (FindingClass.SKIPPED,)


_HELD: Final[dict[Held, tuple[FindingClass, ...]]] = {
    Held.OPEN: (FindingClass.HELD,),
    Held.DROPPED: (FindingClass.GIVEN_UP,),
    Held.RELEASED: (),
    Held.NEVER: (FindingClass.SKIPPED,),
}
"""RELEASED: the release is newer than the cut. NEVER: listed as held, but no row holds it."""
