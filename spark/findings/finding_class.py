"""The classes of findings: kind, severity, what each means, and what an operator should do.

One table, for people: the report, the documentation and the exit code all read it here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple


class Kind(StrEnum):
    """The question that a finding answers with no."""

    MISSING = "missing"
    DUPLICATE = "duplicate"
    UNEXPECTED = "unexpected"
    MISMATCH = "mismatch"
    DISORDERED = "disordered"
    STUCK = "stuck"
    LATENCY = "latency"
    COVERAGE = "coverage"


class Severity(IntEnum):
    """How bad it is; INFO never spoils a verdict."""

    INFO = 0
    LOW = 1
    MEDIUM = 2
    HIGH = 3
    CRITICAL = 4


class FindingClass(StrEnum):
    """Every class of finding this form of the reconciliation can make."""

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
    EXPECTED_DUPLICATE = "EXPECTED_DUPLICATE"
    WRONG_TOPIC = "WRONG_TOPIC"
    CORRUPT_VALUE = "CORRUPT_VALUE"
    WRONG_KEY = "WRONG_KEY"
    HEADER_DRIFT = "HEADER_DRIFT"
    WRONG_PARTITION = "WRONG_PARTITION"
    WRONG_OFFSET = "WRONG_OFFSET"
    ORDER_INVERSION = "ORDER_INVERSION"
    KEY_SPLIT = "KEY_SPLIT"
    POSITION_DRIFT = "POSITION_DRIFT"
    LATENCY_SLO = "LATENCY_SLO"
    CLOCK_SKEW = "CLOCK_SKEW"
    STUCK_HALF = "STUCK_HALF"
    CHECK_SILENT = "CHECK_SILENT"
    PARKED = "PARKED"
    XMIN_STALLED = "XMIN_STALLED"
    RETENTION_GAP = "RETENTION_GAP"
    LOG_TRUNCATED = "LOG_TRUNCATED"
    TOPIC_RECREATED = "TOPIC_RECREATED"
    PARTITIONS_CHANGED = "PARTITIONS_CHANGED"
    COMPACTED = "COMPACTED"
    NOT_READ = "NOT_READ"
    LSO_STUCK = "LSO_STUCK"
    MANIFEST_BREAK = "MANIFEST_BREAK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a class means to an operator. ``partial``: the run did not see all of its plan.

    ``lasting``: what shows it is read by one run alone; only a run that reads everything closes it.
    """

    kind: Kind
    severity: Severity
    meaning: str
    action: str
    command: str
    partial: bool = False
    lasting: bool = False


RULES: Final[dict[FindingClass, Rule]] = {
    FindingClass.LOST: Rule(
        kind=Kind.MISSING,
        severity=Severity.CRITICAL,
        meaning="published by the relay's own account, but not in the topic",
        action="Look for truncation or an unclean leader election, then publish it again.",
        command="outbox reconcile fix {run_id} --class LOST",
    ),
    FindingClass.SKIPPED: Rule(
        kind=Kind.MISSING,
        severity=Severity.CRITICAL,
        meaning="committed, passed by the relay, and in no manifest",
        action="Stop the relay of this shard: it is a relay bug. Then publish the message again.",
        command="outbox shard show {shard}",
    ),
    FindingClass.HELD: Rule(
        kind=Kind.MISSING,
        severity=Severity.MEDIUM,
        meaning="Kafka refuses the record, or it waits behind one that Kafka refuses",
        action="Cure the size, the ACL or the topic; the relay retries by itself.",
        command="outbox held list",
    ),
    FindingClass.GIVEN_UP: Rule(
        kind=Kind.MISSING,
        severity=Severity.INFO,
        meaning="held, then given up by an operator",
        action="None; it was decided.",
        command="outbox message get {message_id} --history",
    ),
    FindingClass.OVERDUE: Rule(
        kind=Kind.MISSING,
        severity=Severity.HIGH,
        meaning="committed and not yet published, for longer than the grace",
        action="The relay is down or slow; nothing is lost.",
        command="outbox shard show {shard}",
    ),
    FindingClass.ROLLED_BACK: Rule(
        kind=Kind.UNEXPECTED,
        severity=Severity.CRITICAL,
        meaning="a record of a message that was rolled back",
        action="An incident: consumers saw a refused fact. Compensate by hand.",
        command="outbox message get {message_id} --history",
    ),
    FindingClass.UNDECIDED: Rule(
        kind=Kind.UNEXPECTED,
        severity=Severity.CRITICAL,
        meaning="a record of a message that nobody has decided",
        action="Stop the relay: a wrong build, or a second writer.",
        command="outbox message get {message_id} --history",
    ),
    FindingClass.UNKNOWN_ID: Rule(
        kind=Kind.UNEXPECTED,
        severity=Severity.HIGH,
        meaning="a record whose message id was never issued here",
        action="A restored database, or a forged record: find the writer.",
        command="outbox message get {message_id}",
    ),
    FindingClass.PG_REGRESSION: Rule(
        kind=Kind.UNEXPECTED,
        severity=Severity.HIGH,
        meaning="a record of a message that PostgreSQL has forgotten",
        action="PostgreSQL lost a tail that Kafka has: follow the runbook of that recovery.",
        command="outbox message get {message_id}",
    ),
    FindingClass.FOREIGN: Rule(
        kind=Kind.UNEXPECTED,
        severity=Severity.LOW,
        meaning="records of another writer on a topic that is the outbox's alone",
        action="Give the write ACL of the topic to the relay alone, and find the writer.",
        command="kafka-acls.sh --list --topic {topic}",
        lasting=True,
    ),
    FindingClass.DUPLICATE: Rule(
        kind=Kind.DUPLICATE,
        severity=Severity.HIGH,
        meaning="more than one record of one message",
        action="Consumers dedupe on outbox_message_id; find the gap in the relay.",
        command="outbox message get {message_id} --history",
    ),
    FindingClass.DUPLICATE_LATE: Rule(
        kind=Kind.DUPLICATE,
        severity=Severity.HIGH,
        meaning="one more record of a message that an earlier run had matched",
        action="Consumers dedupe on outbox_message_id; find the gap in the relay.",
        command="outbox message get {message_id} --history",
    ),
    FindingClass.REDRIVEN: Rule(
        kind=Kind.DUPLICATE,
        severity=Severity.INFO,
        meaning="one more record of a message, published by an operator's repair",
        action="None; an operator ordered it, and consumers dedupe on outbox_message_id.",
        command="outbox message get {message_id} --history",
    ),
    FindingClass.EXPECTED_DUPLICATE: Rule(
        kind=Kind.DUPLICATE,
        severity=Severity.INFO,
        meaning="published again by the lane at_least_once: duplicates expected",
        action="None; consumers dedupe on outbox_message_id.",
        command="outbox message get {message_id}",
    ),
    FindingClass.WRONG_TOPIC: Rule(
        kind=Kind.MISMATCH,
        severity=Severity.CRITICAL,
        meaning="the record is in another topic than was asked for",
        action="Stop the relay; publish again once the cause is known.",
        command="outbox reconcile fix {run_id} --finding {finding_id}",
    ),
    FindingClass.CORRUPT_VALUE: Rule(
        kind=Kind.MISMATCH,
        severity=Severity.CRITICAL,
        meaning="the record's value is not what was prepared",
        action="Look at serializers, mirrors, and for broker corruption; then publish again.",
        command="outbox reconcile fix {run_id} --finding {finding_id}",
    ),
    FindingClass.WRONG_KEY: Rule(
        kind=Kind.MISMATCH,
        severity=Severity.HIGH,
        meaning="the record's key is not what was prepared",
        action="Look at serializers, interceptors and mirrors; then publish again.",
        command="outbox reconcile fix {run_id} --finding {finding_id}",
    ),
    FindingClass.HEADER_DRIFT: Rule(
        kind=Kind.MISMATCH,
        severity=Severity.MEDIUM,
        meaning="a header of the record is not what was prepared",
        action="Look at interceptors and mirrors; then publish again.",
        command="outbox reconcile fix {run_id} --finding {finding_id}",
    ),
    FindingClass.WRONG_PARTITION: Rule(
        kind=Kind.MISMATCH,
        severity=Severity.HIGH,
        meaning="the record is in another partition than was asked for, or than its key belongs to",
        action="Never mix partitioners: all producers of a topic need murmur2.",
        command="outbox message get {message_id} --history",
        lasting=True,
    ),
    FindingClass.WRONG_OFFSET: Rule(
        kind=Kind.MISMATCH,
        severity=Severity.MEDIUM,
        meaning="publication_log names another place than the record's",
        action="GET shows a wrong publication; rebuild publication_log from the topic.",
        command="outbox message get {message_id} --history",
        lasting=True,
    ),
    FindingClass.ORDER_INVERSION: Rule(
        kind=Kind.DISORDERED,
        severity=Severity.HIGH,
        meaning="the record lies behind one of its key that was committed later",
        action="Consumers that keep the last state rebuild it; find the bug of the relay.",
        command="outbox message get {message_id} --history",
        lasting=True,
    ),
    FindingClass.KEY_SPLIT: Rule(
        kind=Kind.DISORDERED,
        severity=Severity.HIGH,
        meaning="one key lies in two partitions while the partition count stood still",
        action="Consumers that keep the last state rebuild it; find the bug of the relay.",
        command="outbox reconcile show {run_id} --kind disordered",
        lasting=True,
    ),
    FindingClass.POSITION_DRIFT: Rule(
        kind=Kind.DISORDERED,
        severity=Severity.MEDIUM,
        meaning="the record's outbox_batch is absent or not its place in the order of commits",
        action="A relay bug: the order cannot be read from the log, take it from the commit log.",
        command="outbox message get {message_id} --history",
        lasting=True,
    ),
    FindingClass.LATENCY_SLO: Rule(
        kind=Kind.LATENCY,
        severity=Severity.MEDIUM,
        meaning="publishing took longer than the topic's target, for longer than is allowed",
        action="A matter of capacity: look at the relay's rate, the brokers and PostgreSQL.",
        command="outbox shard list",
    ),
    FindingClass.CLOCK_SKEW: Rule(
        kind=Kind.LATENCY,
        severity=Severity.LOW,
        meaning="records bear a time before their commit or after the cut",
        action="Keep all clocks by NTP; let the topic's records bear LogAppendTime.",
        command="outbox doctor",
    ),
    FindingClass.STUCK_HALF: Rule(
        kind=Kind.STUCK,
        severity=Severity.HIGH,
        meaning="undecided and not parked, two intervals after its checks or its age were spent",
        action="A bug of the checker, or none is running; if it stays, end it by hand.",
        command="outbox message force-end {message_id}",
    ),
    FindingClass.CHECK_SILENT: Rule(
        kind=Kind.STUCK,
        severity=Severity.CRITICAL,
        meaning="halves of the group have been due for two intervals and nobody asks",
        action="The checker is dead, or it does not see the group: look at its log and readiness.",
        command="outbox status",
    ),
    FindingClass.PARKED: Rule(
        kind=Kind.STUCK,
        severity=Severity.INFO,
        meaning="halves of the group are parked: no check ended them in time",
        action="Cure what kept the producer from answering, then recheck them or end them by hand.",
        command="outbox message recheck {message_id}",
    ),
    FindingClass.XMIN_STALLED: Rule(
        kind=Kind.COVERAGE,
        severity=Severity.MEDIUM,
        meaning="a transaction of more than five minutes holds up what may be read as final",
        action="End the idle transaction; relays and checks wait for it.",
        command="outbox doctor",
    ),
    FindingClass.RETENTION_GAP: Rule(
        kind=Kind.COVERAGE,
        severity=Severity.HIGH,
        meaning="a part of the log or of the tables expired before it was judged",
        action="Reconcile more often, or let topics and the outbox keep what they hold for longer.",
        command="outbox doctor",
        partial=True,
    ),
    FindingClass.LOG_TRUNCATED: Rule(
        kind=Kind.COVERAGE,
        severity=Severity.CRITICAL,
        meaning="the log was cut off behind what an earlier run had read",
        action="An unclean leader election lost records: see LOST, and what the brokers' logs say.",
        command="outbox reconcile fix {run_id} --class LOST",
    ),
    FindingClass.TOPIC_RECREATED: Rule(
        kind=Kind.COVERAGE,
        severity=Severity.HIGH,
        meaning="the topic was deleted and made anew: nothing of it is judged",
        action="Find out who did it; then begin anew with the topic as it is.",
        command="outbox reconcile run --accept-topic {topic}",
        partial=True,
    ),
    FindingClass.PARTITIONS_CHANGED: Rule(
        kind=Kind.COVERAGE,
        severity=Severity.MEDIUM,
        meaning="the topic has another number of partitions than before",
        action="None after a planned growth; the order of each key begins anew there.",
        command="outbox doctor",
    ),
    FindingClass.COMPACTED: Rule(
        kind=Kind.COVERAGE,
        severity=Severity.INFO,
        meaning="the topic is compacted and keeps no record of the message any more",
        action="None; to see every record, set min.compaction.lag.ms to three intervals or more.",
        command="outbox message get {message_id}",
    ),
    FindingClass.NOT_READ: Rule(
        kind=Kind.COVERAGE,
        severity=Severity.HIGH,
        meaning="a part of the plan could not be read",
        action="Repair access, then run again.",
        command="outbox doctor",
        partial=True,
    ),
    FindingClass.LSO_STUCK: Rule(
        kind=Kind.COVERAGE,
        severity=Severity.HIGH,
        meaning="an open transaction hides the end of a partition",
        action="Find it, compare its records with the manifests, and only then abort it.",
        command="kafka-transactions.sh find-hanging",
        partial=True,
    ),
    FindingClass.MANIFEST_BREAK: Rule(
        kind=Kind.COVERAGE,
        severity=Severity.CRITICAL,
        meaning="the relay's manifests do not form one chain",
        action="Stop the relay of this shard and find the second writer.",
        command="outbox shard resolve {shard}",
        lasting=True,
    ),
}


class Graded(NamedTuple):
    """A class, and how bad it is where it was found: a topic may have a severity of its own."""

    finding_class: FindingClass
    severity: Severity
