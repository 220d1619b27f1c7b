"""What the facts of a message mean: one pure table from facts to classes of findings.

Missing is judged by the manifests' position, unexpected by the snapshot. Read this first; all else
in this package only gathers the facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from spark.findings.finding_class import FindingClass


class Decision(StrEnum):
    """What the snapshot says of a half message."""

    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    NONE = "NONE"
    ABSENT = "ABSENT"


class Listed(StrEnum):
    """What the manifests up to the cut say of a message; of several the most final."""

    PUBLISHED = "P"
    PUBLISHED_BEFORE = "S"
    HELD = "K"
    NOWHERE = "-"


class Held(StrEnum):
    """Where a message stands that Kafka refused."""

    OPEN = "open"
    DROPPED = "dropped"
    RELEASED = "released"
    NEVER = "never"


class Content(StrEnum):
    """What of a record differs from its half message; of several the worst."""

    SAME = "same"
    TOPIC = "topic"
    VALUE = "value"
    KEY = "key"
    HEADER = "header"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that decides about one message at the cut."""

    decision: Decision
    judged: bool = False
    """Committed at or below the cut of its shard."""
    listed: Listed = Listed.NOWHERE
    matched: bool = False
    """An earlier run found its one record: each that is seen now is one more."""
    unlisted: bool = False
    """Its shard publishes at least once, or has done so: it need not be in a manifest."""
    repeated: bool = False
    """A record of it was published at least once, so another one is no surprise."""
    copies: int = 0
    """Visible records with its id, those ahead of the cut apart."""
    ahead: int = 0
    redriven: int = 0
    """How many of the copies an operator's repair published."""
    content: Content = Content.SAME
    held: Held = Held.NEVER
    forgotten: bool = False
    """PostgreSQL had lost it and the relay's recovery found it in Kafka."""
    retired: bool = False
    """Its id is older than anything the database still keeps."""
    verifiable: bool = True
    """Its topic was read to the cut and its recorded place has not expired."""


def classify(facts: Facts) -> tuple[FindingClass, ...]:
    """Name what is wrong with a message: nothing, or up to two classes of different kinds."""
    if facts.decision is not Decision.COMMIT:
        return _unexpected(facts) if facts.copies + facts.ahead else ()
    if facts.matched:
        return _repeated(facts, FindingClass.DUPLICATE_LATE) if facts.copies else ()
    if facts.copies + facts.ahead == 0:
        return _missing(facts) if facts.judged and facts.verifiable else ()
    return (*_duplicate(facts), *MISMATCH[facts.content])


def _duplicate(facts: Facts) -> tuple[FindingClass, ...]:
    return _repeated(facts, FindingClass.DUPLICATE) if facts.copies > 1 else ()


def _repeated(facts: Facts, unexplained: FindingClass) -> tuple[FindingClass, ...]:
    """Name a record too many: explained by a repair, by the lane, or not at all."""
    explained = facts.redriven + (0 if facts.matched else 1)
    if facts.redriven and facts.copies <= explained:
        return (FindingClass.REDRIVEN,)
    return (FindingClass.EXPECTED_DUPLICATE if facts.repeated else unexplained,)


MISMATCH: Final[dict[Content, tuple[FindingClass, ...]]] = {
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
    return () if facts.retired else (FindingClass.UNKNOWN_ID,)


def _missing(facts: Facts) -> tuple[FindingClass, ...]:
    if facts.listed in (Listed.PUBLISHED, Listed.PUBLISHED_BEFORE):
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
"""RELEASED: its release is newer than the cut. NEVER: a manifest holds it, but nothing keeps it."""
