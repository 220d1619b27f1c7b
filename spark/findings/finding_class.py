"""The classes of findings and their causes, their kinds and their severities."""

from __future__ import annotations

from datetime import datetime
from enum import IntEnum, StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """The kind of a finding: the property of the delivery that does not hold."""

    MISSING = "missing"
    DUPLICATE = "duplicate"
    UNEXPECTED = "unexpected"
    MISMATCH = "mismatch"
    DISORDERED = "disordered"
    COVERAGE = "coverage"


class Severity(IntEnum):
    """The severity of a finding; INFO does not affect the verdict."""

    INFO = 0
    LOW = 1
    MEDIUM = 2
    HIGH = 3
    CRITICAL = 4


class FindingClass(StrEnum):
    """Every class of finding."""

    LOST = "LOST"
    UNPUBLISHED = "UNPUBLISHED"
    ORPHAN = "ORPHAN"
    FOREIGN = "FOREIGN"
    DUPLICATE = "DUPLICATE"
    ALTERED = "ALTERED"
    WRONG_PLACE = "WRONG_PLACE"
    INCONSISTENT = "INCONSISTENT"
    WRONG_OFFSET = "WRONG_OFFSET"
    ORDER_INVERSION = "ORDER_INVERSION"
    POSITION_DRIFT = "POSITION_DRIFT"
    UNVERIFIABLE = "UNVERIFIABLE"
    LOG_CHANGED = "LOG_CHANGED"
    MANIFEST_BREAK = "MANIFEST_BREAK"


class Cause(StrEnum):
    """Every cause of a finding: its class and its detail, which names one cause of the class."""

    LOST_PUBLISHED = "LOST/published"
    LOST_SKIPPED = "LOST/skipped"
    UNPUBLISHED_HELD = "UNPUBLISHED/held"
    UNPUBLISHED_GIVEN_UP = "UNPUBLISHED/given_up"
    UNPUBLISHED_OVERDUE = "UNPUBLISHED/overdue"
    ORPHAN_ROLLED_BACK = "ORPHAN/rolled_back"
    ORPHAN_UNDECIDED = "ORPHAN/undecided"
    ORPHAN_UNKNOWN = "ORPHAN/unknown"
    ORPHAN_FORGOTTEN = "ORPHAN/forgotten"
    FOREIGN_RECORD = "FOREIGN/record"
    DUPLICATE_REPEATED = "DUPLICATE/repeated"
    DUPLICATE_REDRIVEN = "DUPLICATE/redriven"
    ALTERED_VALUE = "ALTERED/value"
    ALTERED_KEY = "ALTERED/key"
    ALTERED_HEADER = "ALTERED/header"
    WRONG_PLACE_TOPIC = "WRONG_PLACE/topic"
    WRONG_PLACE_PARTITION = "WRONG_PLACE/partition"
    INCONSISTENT_ROW = "INCONSISTENT/row"
    WRONG_OFFSET_RECORDED = "WRONG_OFFSET/recorded"
    ORDER_INVERSION_KEY = "ORDER_INVERSION/key"
    POSITION_DRIFT_HEADER = "POSITION_DRIFT/header"
    UNVERIFIABLE_EXPIRED = "UNVERIFIABLE/expired"
    UNVERIFIABLE_NOT_READ = "UNVERIFIABLE/not_read"
    UNVERIFIABLE_OPEN_TRANSACTION = "UNVERIFIABLE/open_transaction"
    UNVERIFIABLE_COMPACTED = "UNVERIFIABLE/compacted"
    LOG_CHANGED_TRUNCATED = "LOG_CHANGED/truncated"
    LOG_CHANGED_RECREATED = "LOG_CHANGED/recreated"
    LOG_CHANGED_PARTITIONS = "LOG_CHANGED/partitions"
    MANIFEST_BREAK_CHAIN = "MANIFEST_BREAK/chain"

    @property
    def finding_class(self) -> FindingClass:
        """The class."""
        return FindingClass(self.partition("/")[0])

    @property
    def detail(self) -> str:
        """The detail."""
        return self.partition("/")[2]


def causes_named(name: str) -> tuple[Cause, ...]:
    """Return the causes with this name, CLASS or CLASS/detail; none if there is no such name."""
    return tuple(each for each in Cause if name in (each, each.finding_class))


class GradedCause(NamedTuple):
    """A cause with the severity of a finding; a topic may set a different severity."""

    cause: Cause
    severity: Severity


class Place(NamedTuple):
    """The topic and the producer group of a message; the name of one that is not known is empty."""

    topic: str = ""
    producer_group: str = ""


Span = tuple[datetime, datetime]
"""The first and the last time of some messages."""
