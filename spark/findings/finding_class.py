"""The classes of findings, their kinds and their severities."""

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
    STUCK = "stuck"
    LATENCY = "latency"
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
    SKIPPED = "SKIPPED"
    HELD = "HELD"
    GIVEN_UP = "GIVEN_UP"
    OVERDUE = "OVERDUE"
    ROLLED_BACK = "ROLLED_BACK"
    UNDECIDED = "UNDECIDED"
    UNKNOWN_ID = "UNKNOWN_ID"
    PG_REGRESSION = "PG_REGRESSION"
    FOREIGN = "FOREIGN"
    DUPLICATE = "DUPLICATE"
    DUPLICATE_LATE = "DUPLICATE_LATE"
    REDRIVEN = "REDRIVEN"
    WRONG_TOPIC = "WRONG_TOPIC"
    CORRUPT_VALUE = "CORRUPT_VALUE"
    WRONG_KEY = "WRONG_KEY"
    HEADER_DRIFT = "HEADER_DRIFT"
    INCONSISTENT = "INCONSISTENT"
    WRONG_PARTITION = "WRONG_PARTITION"
    WRONG_OFFSET = "WRONG_OFFSET"
    ORDER_INVERSION = "ORDER_INVERSION"
    POSITION_DRIFT = "POSITION_DRIFT"
    LATENCY_SLO = "LATENCY_SLO"
    CLOCK_SKEW = "CLOCK_SKEW"
    STUCK_HALF = "STUCK_HALF"
    CHECK_SILENT = "CHECK_SILENT"
    RETENTION_GAP = "RETENTION_GAP"
    LOG_TRUNCATED = "LOG_TRUNCATED"
    TOPIC_RECREATED = "TOPIC_RECREATED"
    PARTITIONS_CHANGED = "PARTITIONS_CHANGED"
    COMPACTED = "COMPACTED"
    NOT_READ = "NOT_READ"
    LSO_STUCK = "LSO_STUCK"
    MANIFEST_BREAK = "MANIFEST_BREAK"


class GradedClass(NamedTuple):
    """A class with the severity of a finding; a topic may set a different severity."""

    finding_class: FindingClass
    severity: Severity


class Place(NamedTuple):
    """The topic and the producer group of a message; the name of one that is not known is empty."""

    topic: str = ""
    producer_group: str = ""


Span = tuple[datetime, datetime]
"""The first and the last time of some messages."""
