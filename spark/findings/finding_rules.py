"""The rule of each finding class, for the report, the documentation and the exit code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from spark.findings.finding_class import FindingClass, Kind, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The meaning of a class for an operator. ``partial``: a run did not see all of its plan.

    ``lasting``: only one run reads the evidence, so no run that continues that one closes it.
    """

    kind: Kind
    severity: Severity
    meaning: str
    action: str
    command: str
    partial: bool = False
    lasting: bool = False


SERVERS: Final = '--bootstrap-server "$OUTBOX_KAFKA_BOOTSTRAP_SERVERS"'

RULES: Final[dict[FindingClass, Rule]] = {
    FindingClass.LOST: Rule(
        kind=Kind.MISSING,
        severity=Severity.CRITICAL,
        meaning="the relay recorded the message as published, but its topic has no record of it",
        action="Look for a truncated log or an unclean leader election, then publish it again.",
        command="outbox reconcile fix {run_id} --class LOST",
    ),
    FindingClass.SKIPPED: Rule(
        kind=Kind.MISSING,
        severity=Severity.CRITICAL,
        meaning="the message is committed and the relay is past it, but no manifest lists it",
        action="A relay bug: stop the checkers until it is fixed. Then publish the message again.",
        command="outbox shard show {shard}",
    ),
    FindingClass.HELD: Rule(
        kind=Kind.MISSING,
        severity=Severity.MEDIUM,
        meaning="Kafka refuses the record, its row is damaged, or it waits behind such a record",
        action="Fix the size limit, the ACL, the topic or the row. The relay retries by itself.",
        command="outbox held list",
    ),
    FindingClass.GIVEN_UP: Rule(
        kind=Kind.MISSING,
        severity=Severity.INFO,
        meaning="the record was held, and an operator gave it up",
        action="None: an operator decided it.",
        command="outbox audit list --message-id {message_id}",
    ),
    FindingClass.OVERDUE: Rule(
        kind=Kind.MISSING,
        severity=Severity.HIGH,
        meaning="messages of the shard are committed, but not published after the grace period",
        action="Check whether the relay is down or slow. No message is lost.",
        command="outbox shard show {shard}",
    ),
    FindingClass.ROLLED_BACK: Rule(
        kind=Kind.UNEXPECTED,
        severity=Severity.CRITICAL,
        meaning="the topic has a record of a message that was rolled back",
        action="This is an incident: consumers may have read the record. Compensate by hand.",
        command="outbox message show {message_id} --history",
    ),
    FindingClass.UNDECIDED: Rule(
        kind=Kind.UNEXPECTED,
        severity=Severity.CRITICAL,
        meaning="the topic has a record of a message without a decision",
        action="Stop the checkers. Look for a wrong build or a second writer.",
        command="outbox message show {message_id} --history",
    ),
    FindingClass.UNKNOWN_ID: Rule(
        kind=Kind.UNEXPECTED,
        severity=Severity.HIGH,
        meaning="the record names a message that the outbox does not have, or had long before",
        action="Check whether the database was restored. If not, find the writer of the record.",
        command="outbox message show {message_id}",
    ),
    FindingClass.PG_REGRESSION: Rule(
        kind=Kind.UNEXPECTED,
        severity=Severity.HIGH,
        meaning="the topic has a record of a message that PostgreSQL lost",
        action="PostgreSQL lost its newest transactions: see the runbook for a restore.",
        command="outbox message show {message_id}",
    ),
    FindingClass.FOREIGN: Rule(
        kind=Kind.UNEXPECTED,
        severity=Severity.LOW,
        meaning="another writer wrote records to a topic that is reserved for the outbox",
        action="Find the writer, and restrict the write ACL of the topic to the relay.",
        command=f"kafka-acls.sh {SERVERS} --list --topic {{topic}}",
        lasting=True,
    ),
    FindingClass.DUPLICATE: Rule(
        kind=Kind.DUPLICATE,
        severity=Severity.HIGH,
        meaning="the message has more than one record",
        action="Find the bug of the relay. Consumers must deduplicate by outbox_message_id.",
        command="outbox message show {message_id} --history",
    ),
    FindingClass.DUPLICATE_LATE: Rule(
        kind=Kind.DUPLICATE,
        severity=Severity.HIGH,
        meaning="the message has one more record after an earlier run matched it",
        action="Find the bug of the relay. Consumers must deduplicate by outbox_message_id.",
        command="outbox message show {message_id} --history",
    ),
    FindingClass.REDRIVEN: Rule(
        kind=Kind.DUPLICATE,
        severity=Severity.INFO,
        meaning="the message has one more record because a repair published it again",
        action="None: the audit log says who ordered it. Consumers must deduplicate by its id.",
        command="outbox audit list --message-id {message_id}",
    ),
    FindingClass.WRONG_TOPIC: Rule(
        kind=Kind.MISMATCH,
        severity=Severity.CRITICAL,
        meaning="the record is not in the topic that the message requested",
        action="Stop the checkers until the cause is known. Then publish the message again.",
        command="outbox reconcile fix {run_id} --finding {finding_id}",
    ),
    FindingClass.CORRUPT_VALUE: Rule(
        kind=Kind.MISMATCH,
        severity=Severity.CRITICAL,
        meaning="the value of the record differs from the prepared value",
        action="Check serializers, mirrors and brokers for corruption, then publish it again.",
        command="outbox reconcile fix {run_id} --finding {finding_id}",
    ),
    FindingClass.WRONG_KEY: Rule(
        kind=Kind.MISMATCH,
        severity=Severity.HIGH,
        meaning="the key of the record differs from the prepared key",
        action="Check serializers, interceptors and mirrors, then publish it again.",
        command="outbox reconcile fix {run_id} --finding {finding_id}",
    ),
    FindingClass.HEADER_DRIFT: Rule(
        kind=Kind.MISMATCH,
        severity=Severity.MEDIUM,
        meaning="a header of the record differs from the prepared header",
        action="Check interceptors and mirrors, then publish it again.",
        command="outbox reconcile fix {run_id} --finding {finding_id}",
    ),
    FindingClass.INCONSISTENT: Rule(
        kind=Kind.MISMATCH,
        severity=Severity.CRITICAL,
        meaning="the stored decision or half message is gone, or is not what was committed",
        action="Find who changed rows of PostgreSQL, and put them back: runbook, damaged rows.",
        command='psql "$OUTBOX_DATABASE_URL" -xc \'SELECT * FROM outbox.op_message FULL JOIN'
        " outbox.half_message USING (half_id) WHERE half_id = {half_id}'",
        lasting=True,
    ),
    FindingClass.WRONG_PARTITION: Rule(
        kind=Kind.MISMATCH,
        severity=Severity.HIGH,
        meaning="the record is not in the partition that was requested or that its key maps to",
        action="Find the bug of the relay. Rebuild consumers that keep the last value per key.",
        command="outbox reconcile show {run_id} --kind mismatch",
        lasting=True,
    ),
    FindingClass.WRONG_OFFSET: Rule(
        kind=Kind.COVERAGE,
        severity=Severity.MEDIUM,
        meaning="publication_log has other partitions or offsets than records of the topic",
        action="Consumers are not affected, but GET shows wrong places. Accept it after a restore.",
        command="outbox reconcile fix {run_id} --accept {finding_id} --until 365d --reason TEXT",
        lasting=True,
    ),
    FindingClass.ORDER_INVERSION: Rule(
        kind=Kind.DISORDERED,
        severity=Severity.HIGH,
        meaning="the record comes after a record of its key that was committed later",
        action="Find the bug of the relay. Rebuild consumers that keep the last value per key.",
        command="outbox message show {message_id} --history",
        lasting=True,
    ),
    FindingClass.POSITION_DRIFT: Rule(
        kind=Kind.DISORDERED,
        severity=Severity.MEDIUM,
        meaning="the header outbox_batch of the record is missing or differs from the commit order",
        action="A relay bug: take the order from the commit log, not from the topic.",
        command="outbox message show {message_id} --history",
        lasting=True,
    ),
    FindingClass.LATENCY_SLO: Rule(
        kind=Kind.LATENCY,
        severity=Severity.MEDIUM,
        meaning="the publish latency was above the topic's target for too many minutes",
        action="Check the capacity: the rate of the relay, the brokers and PostgreSQL.",
        command="outbox shard list",
    ),
    FindingClass.CLOCK_SKEW: Rule(
        kind=Kind.LATENCY,
        severity=Severity.LOW,
        meaning="the time of some records is before their commit or after the cut",
        action="Synchronize all clocks by NTP, and set the topic to LogAppendTime.",
        command="outbox doctor",
    ),
    FindingClass.STUCK_HALF: Rule(
        kind=Kind.STUCK,
        severity=Severity.HIGH,
        meaning="undecided and not parked two intervals after its last check or its maximum age",
        action="Check that a checker runs. If it stays open, end the message as its producer says.",
        command="outbox message show {message_id} --history",
    ),
    FindingClass.CHECK_SILENT: Rule(
        kind=Kind.STUCK,
        severity=Severity.CRITICAL,
        meaning="checks of the group have been due for two intervals, but none was made",
        action="The checker is down or does not see the group: check its log and readiness.",
        command="outbox status",
    ),
    FindingClass.RETENTION_GAP: Rule(
        kind=Kind.COVERAGE,
        severity=Severity.HIGH,
        meaning="a part of the log or of the tables expired before a run judged it",
        action="Reconcile more often, or keep more. Accept what cannot be verified any more.",
        command="outbox reconcile fix {run_id} --accept {finding_id} --until 365d --reason TEXT",
        partial=True,
    ),
    FindingClass.LOG_TRUNCATED: Rule(
        kind=Kind.COVERAGE,
        severity=Severity.CRITICAL,
        meaning="the log lost records that an earlier run had read",
        action="Look for an unclean leader election in the brokers' logs, and see class LOST.",
        command="outbox reconcile fix {run_id} --class LOST",
    ),
    FindingClass.TOPIC_RECREATED: Rule(
        kind=Kind.COVERAGE,
        severity=Severity.HIGH,
        meaning="the topic was deleted and recreated; what is in the former one only is LOST",
        action="Publish what is LOST again, or accept the topic: then nothing older is missing.",
        command="outbox reconcile run --accept-topic {topic}",
    ),
    FindingClass.PARTITIONS_CHANGED: Rule(
        kind=Kind.COVERAGE,
        severity=Severity.MEDIUM,
        meaning="the number of partitions of the topic has changed",
        action="None if the change was planned. The order per key is judged only from then on.",
        command="outbox audit list --action topic.grew",
    ),
    FindingClass.COMPACTED: Rule(
        kind=Kind.COVERAGE,
        severity=Severity.INFO,
        meaning="the topic is compacted and no longer has the record of the message",
        action="None. To see every record, set min.compaction.lag.ms to at least three intervals.",
        command="outbox message show {message_id}",
    ),
    FindingClass.NOT_READ: Rule(
        kind=Kind.COVERAGE,
        severity=Severity.HIGH,
        meaning="the run could not read a part of its plan",
        action="Restore the access, then run the reconciliation again.",
        command="outbox doctor",
        partial=True,
    ),
    FindingClass.LSO_STUCK: Rule(
        kind=Kind.COVERAGE,
        severity=Severity.HIGH,
        meaning="an open Kafka transaction hides the end of the partition",
        action="Do not abort one of the relay: its next commit ends it. The owner ends any other.",
        command=f"kafka-transactions.sh {SERVERS} describe-producers"
        " --topic {topic} --partition {partition}",
        partial=True,
    ),
    FindingClass.MANIFEST_BREAK: Rule(
        kind=Kind.COVERAGE,
        severity=Severity.CRITICAL,
        meaning="the manifests of the relay do not form one chain, or list what is not there",
        action="Stop the checkers, and find who else writes to outbox.progress.",
        command="outbox shard show {shard}",
        lasting=True,
    ),
}
