"""The reconciliation with one broken rule at a time; the suite must notice each one.

A mutant is a code line in its correct and its broken form, and the test that must fail then.
``python -m tests.spark.audit.mutants.fixtures_mutants`` runs them all and shows who killed which;
arguments go to pytest, so ``-k "not store"`` leaves out those that need Kafka and PostgreSQL.
"""

from __future__ import annotations

import sys
from typing import Final

import pytest

from spark.audit import steps
from spark.columns import digest, segments, slot
from spark.compare import decision_table, facts
from spark.compare.decision_table import Held, Listed
from spark.cut import cut_capture, cut_plan, log_history, sources
from spark.findings import verdict
from spark.findings.finding_class import FindingClass
from spark.findings.verdict import Verdict
from spark.jvm import kafka_options
from spark.report import page, tables
from tests.spark.audit import test_moving_system, test_reads
from tests.spark.audit.mutants import fixtures_bucket_mutants, fixtures_run_mutants
from tests.spark.audit.mutants.fixtures_mutant import Mutant, Needs
from tests.spark.columns import test_digest_and_slot
from tests.spark.compare import test_placement
from tests.unit.spark.compare import test_decision_table, test_diagnosis
from tests.unit.spark.cut import test_cut_capture, test_cut_plan, test_log_history
from tests.unit.spark.findings import test_verdict
from tests.unit.spark.report import test_page

MUTANTS: Final = (
    # Reads: what Spark would do by itself.
    Mutant(
        name="fetchsize=0 loses the snapshot",
        module=sources,
        rule="FETCH_ROWS: Final = 2000",
        broken="FETCH_ROWS: Final = 0",
        killer=test_moving_system.test_spark_reads_the_database_as_the_snapshot_has_it,
        needs=Needs.STORES,
    ),
    Mutant(
        name="the snapshot is not imported",
        module=sources,
        rule="; SET TRANSACTION SNAPSHOT '{}';\"",
        broken='; -- {}"',
        killer=test_moving_system.test_spark_reads_the_database_as_the_snapshot_has_it,
        needs=Needs.STORES,
    ),
    Mutant(
        name="read_uncommitted",
        module=kafka_options,
        rule='"kafka.isolation.level": "read_committed"',
        broken='"kafka.isolation.level": "read_uncommitted"',
        killer=test_reads.test_records_of_an_aborted_transaction_are_not_read,
        needs=Needs.STORES,
    ),
    Mutant(
        name="failOnDataLoss=false",
        module=kafka_options,
        rule='"failOnDataLoss": "true"',
        broken='"failOnDataLoss": "false"',
        killer=test_reads.test_a_range_of_which_a_part_has_expired_is_not_read_at_all,
        needs=Needs.STORES,
    ),
    # The cut: the order in which the stores are asked.
    Mutant(
        name="snapshot before log",
        module=steps,
        rule='    with context.progress.stage("cut of the log"):',
        broken='    with context.source.snapshot(), context.progress.stage("cut of the log"):',
        killer=test_cut_capture.test_the_snapshot_is_taken_last,
    ),
    Mutant(
        name="records before manifests",
        module=cut_capture,
        rule="    progress = log_reader.partitions([progress_topic])\n",
        broken=(
            "    log_reader.offsets(log_reader.partitions(topics()), LogEnd.HIGH_WATERMARK)\n"
            "    progress = log_reader.partitions([progress_topic])\n"
        ),
        killer=test_cut_capture.test_the_manifests_end_before_the_records_and_both_before_the_wait,
    ),
    Mutant(
        name="open transactions not waited for",
        module=cut_capture,
        rule="while (stalled := cut_plan.open_transactions(highs, stable)) and",
        broken="while (stalled := ()) and",
        killer=test_cut_capture.test_every_transaction_below_the_high_watermark_is_waited_for,
    ),
    Mutant(
        name="a partition that does not answer is no gap",
        module=cut_plan,
        rule="for p in sorted(set(silent))\n",
        broken="for p in ()\n",
        killer=test_cut_plan.test_a_partition_without_an_answer_is_a_gap_with_its_reason,
    ),
    Mutant(
        name="an open transaction is no gap",
        module=cut_plan,
        rule="for p in sorted(set(stalled) - set(silent))\n",
        broken="for p in ()\n",
        killer=test_cut_plan.test_a_partition_with_an_open_transaction_is_a_gap,
    ),
    # Content: the digest.
    Mutant(
        name="digest without topic",
        module=digest,
        rule='"topic", flag',
        broken="flag",
        killer=test_digest_and_slot.test_the_digest_is_the_librarys_for_random_records,
        needs=Needs.SPARK,
    ),
    Mutant(
        name="digest without presence flag",
        module=digest,
        rule='"topic", flag',
        broken='"topic"',
        killer=test_digest_and_slot.test_the_digest_is_the_librarys_for_random_records,
        needs=Needs.SPARK,
    ),
    Mutant(
        name="digest without headers",
        module=digest,
        rule='"value", covered()',
        broken='"value"',
        killer=test_digest_and_slot.test_the_digest_is_the_librarys_for_random_records,
        needs=Needs.SPARK,
    ),
    # The comparison.
    Mutant(
        name="ahead rows judged",
        module=slot,
        rule='F.coalesce(F.col("batch_no").isNotNull() & newer & own, F.lit(False))',
        broken="F.lit(False)",
        killer=test_placement.test_a_record_of_a_batch_newer_than_the_cut_is_no_copy_yet,
        needs=Needs.SPARK,
    ),
    Mutant(
        name="any header excuses a record as ahead",
        module=slot,
        rule=" & newer & own",
        broken=" & newer",
        killer=test_placement.test_a_record_of_a_batch_newer_than_the_cut_is_no_copy_yet,
        needs=Needs.SPARK,
    ),
    Mutant(
        name="a flush judged whole",
        module=segments,
        rule='F.least(F.col(end_n), F.col("size"))',
        broken='F.col("size")',
        killer=test_placement.test_a_commit_is_judged_up_to_the_cut_in_the_middle_of_a_flush,
        needs=Needs.SPARK,
    ),
    # The judgement.
    Mutant(
        name="missing judged without the manifests' position",
        module=decision_table,
        rule="if facts.judged and facts.verifiable else ()",
        broken="if facts.verifiable else ()",
        killer=test_decision_table.test_only_a_judged_commit_without_any_record_is_missing,
    ),
    Mutant(
        name="a record ahead does not excuse",
        module=decision_table,
        rule="if facts.copies + facts.ahead == 0:",
        broken="if facts.copies == 0:",
        killer=test_decision_table.test_only_a_judged_commit_without_any_record_is_missing,
    ),
    Mutant(
        name="a phantom ahead is not looked at",
        module=decision_table,
        rule="return _unexpected(facts) if facts.copies + facts.ahead else ()",
        broken="return _unexpected(facts) if facts.copies else ()",
        killer=test_decision_table.test_only_a_record_without_a_commit_is_unexpected,
    ),
    Mutant(
        name="a held message that nothing keeps passes",
        module=decision_table,
        rule="    Held.NEVER: (FindingClass.SKIPPED,),",
        broken="    Held.NEVER: (),",
        killer=test_decision_table.test_the_manifests_show_why_a_message_is_missing,
        given={"listed": Listed.HELD, "held": Held.NEVER, "expected": (FindingClass.SKIPPED,)},
    ),
    Mutant(
        name="a topic that was not read is judged",
        module=facts,
        rule="if topic in judgement.unread_topics:",
        broken="if topic in ():",
        killer=test_diagnosis.test_nothing_of_a_topic_that_was_not_read_is_lost,
    ),
    Mutant(
        name="what expired with the log is called lost",
        module=facts,
        rule="return Unverifiable.EXPIRED if expired else None",
        broken="return None",
        killer=test_diagnosis.test_a_record_that_expired_with_the_log_is_not_lost,
    ),
    # The log since the last run.
    Mutant(
        name="anchor ignored",
        module=log_history,
        rule="if digest_of(present) != anchor.digest:",
        broken="if False:",
        killer=test_log_history.test_a_truncated_log_that_has_grown_again_is_recognized_by_its_anchor,
    ),
    Mutant(
        name="a log that ends before its last end",
        module=log_history,
        rule="if end is not None and each.end < end:",
        broken="if False:",
        killer=test_log_history.test_a_log_that_ends_before_the_last_end_was_cut_off,
    ),
    Mutant(
        name="a range that expired before it was read",
        module=log_history,
        rule="elif each.start > end:",
        broken="elif False:",
        killer=test_log_history.test_a_log_that_begins_after_the_last_end_has_a_gap,
        given={"start": 101, "expected": {"RETENTION_GAP": test_log_history.HERE}},
    ),
    Mutant(
        name="a recreated topic is continued",
        module=log_history,
        rule="if known.get(name, each.id) != each.id",
        broken="if False",
        killer=test_log_history.test_a_topic_of_another_id_was_recreated_and_has_no_other_finding,
    ),
    # The verdict and what people see of it.
    Mutant(
        name="clean with one partition unread",
        module=verdict,
        rule="        return Verdict.INCONCLUSIVE\n",
        broken="        return Verdict.CLEAN\n",
        killer=test_verdict.test_partial_coverage_is_never_clean,
        given={"classes": (FindingClass.NOT_READ,), "verdict": Verdict.INCONCLUSIVE},
    ),
    Mutant(
        name="exit 0 with one partition unread",
        module=verdict,
        rule="        return EXIT_INCONCLUSIVE\n",
        broken="        return EXIT_CLEAN\n",
        killer=test_verdict.test_the_exit_code_follows_from_the_findings_and_the_tolerance,
        given={
            "counts": {FindingClass.NOT_READ: 1},
            "fail_on": "critical",
            "most": dict[str, int](),
            "code": 8,
        },
    ),
    Mutant(
        name="a page that escapes nothing",
        module=page,
        rule="_environment(autoescape=True)",
        broken="_environment(autoescape=False)",
        killer=test_page.test_text_of_others_is_escaped_on_the_page,
    ),
    Mutant(
        name="a cell that a spreadsheet calculates",
        module=tables,
        rule='return f"\'{text}" if text.startswith(FORMULA_STARTS) else text',
        broken="return text",
        killer=test_page.test_no_cell_of_the_csv_is_a_formula,
    ),
    *fixtures_run_mutants.MUTANTS,
    *fixtures_bucket_mutants.MUTANTS,
)


class Survivors:
    """A pytest plugin that reports for each mutant which test killed it."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Report one mutant when its test has ended."""
        properties = dict(report.user_properties)
        if report.when == "call" and "mutant" in properties:
            fate = f"killed by {properties['killer']}" if report.passed else "SURVIVED"
            sys.stdout.write(f"\n{properties['mutant']:<50} {fate}")


def main(arguments: list[str]) -> int:
    """Run every mutant; return 0 if each was killed."""
    names = ["tests/spark/audit/mutants/test_mutants.py", "-q", "--no-header", *arguments]
    return int(pytest.main(names, plugins=[Survivors()]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
